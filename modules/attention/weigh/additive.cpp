#include "modules/attention/weigh/additive.h"

#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/torch.h"

namespace headlab {

Additive::Additive(const AdditiveOptions& options, Shape shape)
    : head_width_(shape->head_width), width_(options.width.value_or(shape->head_width)) {
  const auto H = shape->H();
  query_weight = register_parameter("query_weight", torch::empty({H, width_, head_width_}));
  key_weight = register_parameter("key_weight", torch::empty({H, width_, head_width_}));
  bias = register_parameter("bias", torch::zeros({H, width_}));
  weight = register_parameter("weight", torch::empty({H, width_}));
}

void Additive::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(query_weight, head_width_, width_, generator("query_weight"));
  xavier_uniform(key_weight, head_width_, width_, generator("key_weight"));
  xavier_uniform(weight, width_, 1, generator("weight"));
  bias.zero_();
}

Tensor Additive::score(const Tensor& q_BHTK, const Tensor& k_BHSK, const std::vector<int64_t>& heads) {
  const auto of = [&](const Tensor& parameter) { return pick(parameter, 0, heads); };
  const auto from_q = torch::matmul(q_BHTK, of(query_weight).transpose(-2, -1)) + of(bias).unsqueeze(1);  // [B,H,T,A]
  const auto from_k = torch::matmul(k_BHSK, of(key_weight).transpose(-2, -1));                            // [B,H,S,A]
  const auto hidden_BHTSA = torch::tanh(from_q.unsqueeze(3) + from_k.unsqueeze(2));
  return torch::matmul(hidden_BHTSA, of(weight).unsqueeze(1).unsqueeze(-1)).squeeze(-1);
}

void Additive::axes(HeadAxes axes) const {
  for (const auto& item : named_parameters()) axes.head(item.key(), 0, 1);
}

int64_t Additive::flops(int64_t T, int64_t S, int64_t slots, int64_t pairs) const {
  return 2 * slots * (T + S) * width_ * head_width_ + 2 * pairs * width_;
}

}  // namespace headlab
