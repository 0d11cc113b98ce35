#include "modules/attention/mix/experts.h"

#include "modules/attention/project/experts.h"
#include "modules/tensor/torch.h"

namespace headlab {

ExpertsMix::ExpertsMix(const NoOptions&, Shape shape) : shape_(std::move(shape)) {
  weight = register_parameter("weight", torch::empty({shape_->H(), shape_->value_width, shape_->width}));
}

void ExpertsMix::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, shape_->value_width, shape_->width, generator("weight"));
}

Tensor ExpertsMix::mix(const Tensor& z_BHTK, const HeadPlan& plan) {
  if (!plan.chosen_BTk.defined()) return per_head(z_BHTK).sum(1);
  auto z_BTkK = z_BHTK.permute({0, 2, 1, 3});
  if (plan.weight_BTk.defined()) z_BTkK = z_BTkK * plan.weight_BTk.unsqueeze(-1);
  const auto share = expert_product(z_BTkK.flatten(0, 2), plan.chosen_BTk.flatten(), weight);
  return share.view_as(plan.chosen_BTk.unsqueeze(-1).expand({-1, -1, -1, shape_->width})).sum(2);
}

Tensor ExpertsMix::per_head(const Tensor& z_BHTK) {
  // With chosen experts, a slot's share belongs to another expert at each token: there is no [B,H,T,D].
  if (z_BHTK.size(1) != shape_->H()) return {};
  return torch::matmul(z_BHTK, weight);
}

Tensor ExpertsMix::nothing() const { return weight.new_zeros({shape_->width}); }

}  // namespace headlab
