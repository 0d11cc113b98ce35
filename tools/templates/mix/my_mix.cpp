#include "tools/templates/mix/my_mix.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

MyMix::MyMix(const MyMixOptions& options, Shape shape) : shape_(std::move(shape)) {
  share = register_parameter("share", torch::ones({shape_->H()}));
  weight = register_parameter("weight", torch::empty({shape_->width, shape_->H() * shape_->value_width}));
  if (options.bias) bias = register_parameter("bias", torch::zeros({shape_->width}));
}

void MyMix::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, shape_->original_heads * shape_->value_width, shape_->width, generator("weight"));
  share.fill_(1);
  if (bias.defined()) bias.zero_();
}

Tensor MyMix::mix(const Tensor& z_BHTK, const HeadPlan&) {
  const auto shared = relevance::through(z_BHTK, z_BHTK * share.unsqueeze(-1).unsqueeze(-1));
  return relevance::linear(shared.transpose(1, 2).flatten(2), weight, bias);
}

Tensor MyMix::per_head(const Tensor& z_BHTK) {
  const auto weight_HKD = weight.t().unflatten(0, at::IntArrayRef{shape_->H(), shape_->value_width});
  return torch::matmul(z_BHTK * share.unsqueeze(-1).unsqueeze(-1), weight_HKD);  // [B,H,T,K] x [H,K,D]
}

Tensor MyMix::nothing() const { return bias.defined() ? bias : weight.new_zeros({shape_->width}); }

void MyMix::axes(HeadAxes axes) const {
  axes.head("share", 0, 1);
  axes.head("weight", 1, shape_->value_width);
}

}  // namespace headlab
