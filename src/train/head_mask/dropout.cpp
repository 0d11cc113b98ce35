#include "src/train/head_mask/dropout.h"

#include "modules/base/random.h"
#include "modules/model/model.h"
#include "modules/tensor/torch.h"

namespace headlab {

void HeadDropoutOptions::describe(Fields& fields) {
  fields.add("rate", rate, "probability that an update goes without a head").at_least(0).below(1);
  fields.add("stacks", stacks, "of these stacks alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
}

HeadDropout::HeadDropout(const HeadDropoutOptions& options, const Model& model, const std::string&)
    : rate_(options.rate), heads_(heads_in(model.heads(), options.stacks)), ones_(model.ones()) {}

std::map<Stack, Tensor> HeadDropout::scale(const MaskedUpdate& update) {
  Random random(update.seed);
  std::map<Stack, Tensor> scale;
  for (const auto& [stack, ones] : ones_) scale[stack] = ones.clone();
  for (const auto head : heads_)
    scale.at(head.stack).index_put_({head.layer, head.head}, random.uniform() < rate_ ? 0.0 : 1 / (1 - rate_));
  return scale;
}

}  // namespace headlab
