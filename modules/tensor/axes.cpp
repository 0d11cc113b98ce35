#include "modules/tensor/axes.h"

#include <algorithm>
#include <map>
#include <set>

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

Tensor* find_tensor(torch::nn::Module& module, const std::string& name,
                    torch::OrderedDict<std::string, Tensor>& parameters,
                    torch::OrderedDict<std::string, Tensor>& buffers) {
  if (auto* found = parameters.find(name)) return found;
  if (auto* found = buffers.find(name)) return found;
  throw std::logic_error("axes name a parameter that " + module.name() + " does not have: " + name);
}

}  // namespace

void keep_units(torch::nn::Module& module, const HeadAxes& axes, const std::vector<int64_t>& heads,
                const std::vector<int64_t>& groups) {
  torch::NoGradGuard no_grad;
  auto parameters = module.named_parameters();
  auto buffers = module.named_buffers();
  std::map<std::pair<std::string, int64_t>, std::vector<HeadAxis>> by_dim;
  for (const auto& axis : axes.all()) by_dim[{axis.parameter, axis.dim}].push_back(axis);
  for (auto& [place, stretches] : by_dim) {
    std::sort(stretches.begin(), stretches.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    std::vector<int64_t> index;
    for (const auto& axis : stretches)
      for (auto unit : axis.unit == Unit::head ? heads : groups)
        for (int64_t i = 0; i < axis.width; ++i) index.push_back(axis.offset + unit * axis.width + i);
    auto* tensor = find_tensor(module, place.first, parameters, buffers);
    const auto kept = torch::tensor(index, torch::kLong).to(tensor->device());
    tensor->set_data(tensor->detach().index_select(place.second, kept).clone());
    if (tensor->grad().defined()) tensor->mutable_grad() = Tensor();
  }
}

int64_t entries_per_head(torch::nn::Module& module, const HeadAxes& axes) {
  auto parameters = module.named_parameters();
  int64_t count = 0;
  for (const auto& axis : axes.all()) {
    const auto* tensor = parameters.find(axis.parameter);
    if (axis.unit != Unit::head || !tensor || tensor->size(axis.dim) == 0) continue;
    count += axis.width * (tensor->numel() / tensor->size(axis.dim));
  }
  return count;
}

Tensor entries_of(torch::nn::Module& module, const HeadAxes& axes, const std::string& parameter,
                  const std::vector<int64_t>& heads) {
  auto parameters = module.named_parameters();
  Tensor mask;
  for (const auto& axis : axes.all()) {
    if (axis.parameter != parameter || axis.unit != Unit::head) continue;
    const auto* tensor = parameters.find(parameter);
    if (!tensor) return {};
    if (!mask.defined()) mask = torch::zeros_like(*tensor);
    for (auto head : heads) mask.narrow(axis.dim, axis.offset + head * axis.width, axis.width).fill_(1);
  }
  return mask;
}

}  // namespace headlab
