#include "modules/attention/position/alibi.h"

#include <cmath>

#include "modules/tensor/torch.h"

namespace headlab {

void AlibiOptions::describe(Fields& fields) {
  fields.add("learned", learned, "learn the slope of each head; false: fixed, the paper's");
  fields.add("bias", bias, "where the bias is added: outside the factor 1/sqrt(head width) of the scores, or inside")
      .one_of({"outside", "inside"});
}

std::vector<double> alibi_slopes(int64_t H) {
  const auto geometric = [](int64_t n, int64_t i) {
    return std::exp2(-8.0 * static_cast<double>(i + 1) / static_cast<double>(n));
  };
  int64_t power = 1;
  while (2 * power <= H) power *= 2;
  std::vector<double> slopes;
  for (int64_t i = 0; i < power; ++i) slopes.push_back(geometric(power, i));
  for (int64_t i = 0; power + i < H; ++i) slopes.push_back(geometric(2 * power, 2 * i));
  return slopes;
}

Alibi::Alibi(const AlibiOptions& options, Shape shape) : options_(options), shape_(std::move(shape)) {
  if (shape_->cross)
    throw ShapeError(
        "position.alibi: expected a self-attention; a cross-attention's queries and keys share no positions");
  const auto values = start().to(torch::get_default_dtype());
  slope = options_.learned ? register_parameter("slope", values) : register_buffer("slope", values);
}

Tensor Alibi::start() const {
  const auto slopes = alibi_slopes(shape_->original_heads);
  std::vector<double> of_heads;
  for (auto head : shape_->heads) of_heads.push_back(slopes[head]);
  return torch::tensor(of_heads, torch::kFloat64);
}

void Alibi::draw(const std::function<at::Generator(const std::string&)>&) {
  if (options_.learned) slope.copy_(start());
}

bool Alibi::learns_bias() const { return slope.requires_grad() && at::GradMode::is_enabled(); }

Tensor Alibi::bias(const Tensor&, const Tensor& q_pos, const Tensor& k_pos) {
  const auto type = at_least_float(slope.scalar_type());
  const auto distance_TS = (q_pos.unsqueeze(-1) - k_pos.unsqueeze(-2)).abs().to(type);  // [T,S] or [B,T,S]
  const auto distance = distance_TS.dim() == 2 ? distance_TS.unsqueeze(0).unsqueeze(0) : distance_TS.unsqueeze(1);
  auto m_H11 = slope.to(type).unsqueeze(-1).unsqueeze(-1);
  if (options_.bias == "inside") m_H11 = m_H11 / std::sqrt(static_cast<double>(shape_->head_width));
  return -(m_H11 * distance);
}

}  // namespace headlab
