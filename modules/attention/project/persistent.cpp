#include "modules/attention/project/persistent.h"

#include <cmath>
#include <numeric>

#include "modules/attention/rules.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/torch.h"

namespace headlab {

Persistent::Persistent(const PersistentOptions& options, Shape shape)
    : vectors_(options.vectors), shape_(std::move(shape)) {
  key = register_parameter("key", torch::empty({shape_->H(), vectors_, shape_->head_width}));
  value = register_parameter("value", torch::empty({shape_->H(), vectors_, shape_->value_width}));
}

void Persistent::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto scale = 1 / std::sqrt(static_cast<double>(shape_->width));
  const auto wide = [](const Tensor& like) {
    return torch::empty(like.sizes(), torch::kFloat64);
  };  // the same draws in any type
  key.copy_(wide(key).uniform_(-scale, scale, generator("key")));
  value.copy_(wide(value).normal_(0, scale, generator("value")));
}

Tensor Persistent::joined(const Tensor& own_HNK, const Tensor& context_BGSK) const {
  const auto context = context_BGSK.size(1) == shape_->H() ? context_BGSK : pick(context_BGSK, 1, shape_->group_of);
  auto own = own_HNK.to(context.scalar_type()).unsqueeze(0);
  own = recording() ? torch::zeros_like(context.slice(2, 0, 1)) + own : own.expand({context.size(0), -1, -1, -1});
  return torch::cat({own, context}, 2);
}

std::vector<Tensor> Persistent::expand(std::vector<Tensor> kv) {
  return {joined(key * std::sqrt(static_cast<double>(shape_->head_width)), kv[0]),
          joined(value * std::sqrt(static_cast<double>(vectors_)), kv[1])};
}

std::vector<int64_t> Persistent::group_of(std::vector<int64_t> before) const {
  std::iota(before.begin(), before.end(), 0);
  return before;
}

void Persistent::axes(HeadAxes axes) const {
  axes.head("key", 0, 1);
  axes.head("value", 0, 1);
}

void persistent_rule(const PersistentOptions&, const AttentionAround& around) {
  if (around.index + 1 < around.options.then.items.size())
    around.problem(
        "", "persistent: expected it to be the last adapter; what follows would take its vectors for the context's");
}

}  // namespace headlab
