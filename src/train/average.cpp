#include "src/train/average.h"

#include "modules/base/error.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/checkpoint.h"

namespace headlab {

void WeightAverage::add(const TensorMap& weights, const std::string& from) {
  torch::NoGradGuard no_grad;
  if (count_ > 0) {
    for (const auto& [name, mean] : means_)
      if (!weights.count(name))
        throw FileError(from + ": no " + name + ", which the checkpoints before it have; they are not of one model");
    for (const auto& [name, weight] : weights) {
      const auto found = means_.find(name);
      if (found == means_.end())
        throw FileError(from + ": " + name + " is not in the checkpoints before it; they are not of one model");
      if (found->second.sizes() != weight.sizes() || types_.at(name) != weight.scalar_type())
        throw FileError(from + ": " + name + ": expected " + dtype_name(types_.at(name)) + " " +
                        shape_text(found->second) + ", got " + dtype_name(weight.scalar_type()) + " " +
                        shape_text(weight));
    }
  }
  ++count_;
  for (const auto& [name, weight] : weights) {
    types_[name] = weight.scalar_type();
    auto& mean = means_[name];
    if (!weight.is_floating_point()) {
      mean = weight.clone();
    } else if (count_ == 1) {
      mean = weight.to(torch::kFloat64, /*non_blocking=*/false, /*copy=*/true);
    } else {
      mean.add_((weight.to(torch::kFloat64) - mean).div_(static_cast<double>(count_)));
    }
  }
}

TensorMap WeightAverage::mean() const {
  TensorMap mean;
  for (const auto& [name, so_far] : means_) mean[name] = so_far.to(types_.at(name));
  return mean;
}

AveragedCheckpoints average_checkpoints(const std::filesystem::path& folder, int64_t count) {
  auto found = complete_checkpoints(folder);
  if (static_cast<int64_t>(found.size()) < count)
    throw UsageError(folder.string() + ": expected at least " + std::to_string(count) +
                     " checkpoints to average, got " + std::to_string(found.size()) +
                     "; set the training's checkpoint_every, and its keep_checkpoints to " + std::to_string(count) +
                     " or more");
  AveragedCheckpoints averaged;
  WeightAverage average;
  for (auto at = found.end() - count; at != found.end(); ++at) {
    average.add(load_checkpoint(at->second).model, at->second.string());
    averaged.steps.push_back(at->first);
  }
  averaged.model = average.mean();
  return averaged;
}

}  // namespace headlab
