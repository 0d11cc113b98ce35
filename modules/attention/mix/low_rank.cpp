#include "modules/attention/mix/low_rank.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace F = torch::nn::functional;

void LowRankMixOptions::describe(Fields& fields) {
  fields.add("bias", bias, "add a learned bias to the output");
  fields.add("rank", rank, "rank of what is added to the output's matrix").at_least(1);
  fields.add("scale", scale, "factor of what is added").above(0);
}

LowRankMix::LowRankMix(const LowRankMixOptions& options, Shape shape)
    : Concatenate(
          [&] {
            ConcatenateOptions plain;
            plain.bias = options.bias;
            return plain;
          }(),
          std::move(shape)),
      scale_(options.scale) {
  down = register_parameter("down", torch::empty({options.rank, shape_->H() * shape_->value_width}));
  up = register_parameter("up", torch::empty({shape_->width, options.rank}));
}

void LowRankMix::draw(const std::function<at::Generator(const std::string&)>& generator) {
  Concatenate::draw(generator);
  xavier_uniform(down, shape_->original_heads * shape_->value_width, down.size(0), generator("down"));
  up.zero_();
}

Tensor LowRankMix::mix(const Tensor& z_BHTK, const HeadPlan& plan) {
  const auto z_BTHK = z_BHTK.transpose(1, 2).flatten(2);
  if (relevance::flows())
    return relevance::linear(z_BTHK, weight + scale_ * torch::matmul(up, down), bias);  // one map, one rule
  return Concatenate::mix(z_BHTK, plan) + scale_ * F::linear(F::linear(z_BTHK, down), up);
}

Tensor LowRankMix::per_head(const Tensor& z_BHTK) {
  const auto down_HKR = down.t().unflatten(0, at::IntArrayRef{shape_->H(), shape_->value_width});
  return Concatenate::per_head(z_BHTK) + scale_ * torch::matmul(torch::matmul(z_BHTK, down_HKR), up.t());
}

void LowRankMix::axes(HeadAxes axes) const {
  Concatenate::axes(axes);
  axes.head("down", 1, shape_->value_width);
}

int64_t LowRankMix::flops(int64_t T, int64_t slots) const {
  return Concatenate::flops(T, slots) + 2 * T * down.size(0) * (slots * shape_->value_width + shape_->width);
}

}  // namespace headlab
