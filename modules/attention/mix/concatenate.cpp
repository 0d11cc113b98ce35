#include "modules/attention/mix/concatenate.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

Concatenate::Concatenate(const ConcatenateOptions& options, Shape shape) : shape_(std::move(shape)) {
  weight = register_parameter("weight", torch::empty({shape_->width, shape_->H() * shape_->value_width}));
  if (options.bias) bias = register_parameter("bias", torch::zeros({shape_->width}));
}

void Concatenate::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, shape_->original_heads * shape_->value_width, shape_->width, generator("weight"));
  if (bias.defined()) bias.zero_();
}

Tensor Concatenate::mix(const Tensor& z_BHTK, const HeadPlan&) {
  return relevance::linear(z_BHTK.transpose(1, 2).flatten(2), weight, bias);
}

Tensor Concatenate::per_head(const Tensor& z_BHTK) {
  const auto weight_HKD = weight.t().unflatten(0, at::IntArrayRef{shape_->H(), shape_->value_width});
  const auto o_HND = torch::bmm(z_BHTK.transpose(0, 1).flatten(1, 2), weight_HKD);  // N: tokens of all texts
  return o_HND.unflatten(1, at::IntArrayRef{z_BHTK.size(0), z_BHTK.size(2)}).transpose(0, 1);
}

Tensor Concatenate::nothing() const { return bias.defined() ? bias : weight.new_zeros({shape_->width}); }

void Concatenate::axes(HeadAxes axes) const { axes.head("weight", 1, shape_->value_width); }

}  // namespace headlab
