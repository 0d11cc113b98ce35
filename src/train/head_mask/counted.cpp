#include "src/train/head_mask/counted.h"

#include <algorithm>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "modules/model/model.h"
#include "modules/tensor/torch.h"

namespace headlab {

void CountedMaskOptions::describe(Fields& fields) {
  fields.add("count", count, "heads that each update goes without").at_least(0).unit("heads");
  fields.add("stacks", stacks, "of these stacks alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
  fields.add("rescale", rescale, "multiply the heads that are left by all / left");
}

CountedMask::CountedMask(const CountedMaskOptions& options, const Model& model, const std::string& where)
    : options_(options), heads_(heads_in(model.heads(), options.stacks)), ones_(model.ones()) {
  if (options.count > static_cast<int64_t>(heads_.size()))
    throw UsageError(where + ".count: expected at most the number of heads (" + std::to_string(heads_.size()) +
                     "), got " + std::to_string(options.count));
}

std::map<Stack, Tensor> CountedMask::scale(const MaskedUpdate& update) {
  std::map<Stack, Tensor> scale;
  for (const auto& [stack, ones] : ones_) scale[stack] = ones.clone();
  if (options_.count == 0) return scale;
  const auto all = static_cast<double>(heads_.size()), left = all - static_cast<double>(options_.count);
  if (options_.rescale && left > 0)
    for (const auto head : heads_) scale.at(head.stack).index_put_({head.layer, head.head}, all / left);
  for (const auto head : choose(update)) scale.at(head.stack).index_put_({head.layer, head.head}, 0);
  return scale;
}

HeadSet RandomMask::choose(const MaskedUpdate& update) const {
  Random random(update.seed);
  HeadSet chosen;
  for (const auto index : random.sample(static_cast<int64_t>(heads_.size()), options_.count))
    chosen.push_back(heads_[static_cast<std::size_t>(index)]);
  return chosen;
}

HeadSet ImportanceMask::choose(const MaskedUpdate& update) const {
  std::map<Stack, Tensor> gradient;
  for (const auto& [stack, of_stack] : update.gradient())
    gradient[stack] = of_stack.abs().to(torch::kCPU, torch::kFloat64);
  std::map<HeadId, double> importance;
  for (const auto head : heads_) importance[head] = gradient.at(head.stack)[head.layer][head.head].item<double>();
  auto by_importance = heads_;
  std::stable_sort(by_importance.begin(), by_importance.end(),
                   [&](auto a, auto b) { return importance.at(a) > importance.at(b); });
  by_importance.resize(static_cast<std::size_t>(options_.count));
  return by_importance;
}

}  // namespace headlab
