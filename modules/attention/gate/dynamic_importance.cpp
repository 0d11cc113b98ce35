#include "modules/attention/gate/dynamic_importance.h"

#include <cmath>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void DynamicImportanceOptions::describe(Fields& fields) {
  fields.add("rescale", rescale, "multiply importances by the number of heads, so that uniform ones change nothing");
  fields.add("weight", weight, "weight of the loss against uniform importances").at_least(0).means("0: no such loss");
}

DynamicImportance::DynamicImportance(const DynamicImportanceOptions& options, Shape shape)
    : options_(options), shape_(std::move(shape)) {
  const auto K = shape_->value_width;
  query_weight = register_parameter("query_weight", torch::empty({K, shape_->width}));
  key_weight = register_parameter("key_weight", torch::empty({K, K}));
}

void DynamicImportance::draw(const std::function<at::Generator(const std::string&)>& generator) {
  const auto K = shape_->value_width;
  xavier_uniform(query_weight, shape_->width, K, generator("query_weight"));
  xavier_uniform(key_weight, K, K, generator("key_weight"));
}

Tensor DynamicImportance::scores(const Tensor& z_BHTK, const Tensor& x_BTD) const {
  // q . (W_k z_h) = (q W_k) . z_h: one product for all heads.
  const auto asked_BTK = torch::matmul(torch::matmul(x_BTD, query_weight.t()), key_weight);
  const auto type = at_least_float(z_BHTK.scalar_type());
  return (z_BHTK.to(type) * asked_BTK.to(type).unsqueeze(1)).sum(-1) /
         std::sqrt(static_cast<double>(shape_->value_width));
}

Tensor DynamicImportance::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall& call) {
  const auto scores_BHT = scores(z_BHTK, call.x_BTD);
  const auto a_BHT = torch::softmax(scores_BHT, 1);
  const auto heads = static_cast<double>(shape_->H());
  if (is_training() && options_.weight > 0) {
    const auto kl_BT = (a_BHT * (torch::log_softmax(scores_BHT, 1) + std::log(heads))).sum(1);
    auto real_BT = torch::ones_like(kl_BT);
    if (call.see.query_mask_BT.defined()) real_BT = call.see.query_mask_BT.to(kl_BT.scalar_type());
    call.run.aux.push_back(
        {"dynamic_importance", call.site, -options_.weight * (kl_BT * real_BT).sum(), real_BT.sum().clamp_min(1)});
  }
  const auto factor_BHT = options_.rescale ? a_BHT * heads : a_BHT;
  return relevance::through(z_BHTK, z_BHTK * factor_BHT.to(z_BHTK.scalar_type()).unsqueeze(-1));
}

int64_t DynamicImportance::flops(int64_t T) const {
  const auto K = shape_->value_width;
  return 2 * T * K * (shape_->width + K + shape_->H());
}

}  // namespace headlab
