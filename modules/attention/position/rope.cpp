#include "modules/attention/position/rope.h"

#include <torch/torch.h>

namespace headlab {

Rope::Rope(const RopeOptions& options, Shape shape) {
  const auto K = shape->head_width;
  if (K % 2 != 0)
    throw ShapeError("position.rope: expected an even head width, got " + std::to_string(K) + "; choose another head_width");
  const auto exponent = torch::arange(0, K, 2, torch::kFloat64) / -static_cast<double>(K);
  frequency = register_buffer("frequency", torch::pow(options.base, exponent).to(torch::get_default_dtype()));
}

Tensor Rope::rotate(Tensor x_BHTK, const Tensor& positions) {
  auto angle = positions.unsqueeze(-1).to(frequency.scalar_type()) * frequency;  // [T,K/2] or [B,T,K/2]
  if (positions.dim() == 2) angle = angle.unsqueeze(1);                          // one angle for all heads
  const auto cos = angle.cos().to(x_BHTK.scalar_type()), sin = angle.sin().to(x_BHTK.scalar_type());
  auto pairs = x_BHTK.unflatten(-1, {-1, 2}).unbind(-1);
  return torch::stack({pairs[0] * cos - pairs[1] * sin, pairs[0] * sin + pairs[1] * cos}, -1).flatten(-2);
}

}  // namespace headlab
