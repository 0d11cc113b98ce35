#include "modules/attention/position/rope.h"

#include <algorithm>
#include <cmath>

#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

int64_t rotated_width(const RopeOptions& options, int64_t K) {
  return 2 * static_cast<int64_t>(options.fraction * static_cast<double>(K) / 2 + 1e-9);
}

}  // namespace

void RopeOptions::describe(Fields& fields) {
  fields.add("base", base, "longest wavelength is 2 pi base positions").above(1);
  fields.add("fraction", fraction, "share of a head's numbers that is rotated").above(0).at_most(1);
  fields
      .add("scaling", scaling,
           "for texts longer than those of training: positions divided by factor (linear), or a base so much larger "
           "that "
           "the slowest pair turns factor times more slowly (ntk)")
      .one_of({"none", "linear", "ntk"});
  fields.add("factor", factor, "how many times longer; for linear and ntk").at_least(1);
}

void RopeOptions::rules(Problems& problems) const {
  if (scaling == "none" && factor != 1)
    problems.add("factor", "has no effect without a scaling; choose \"linear\" or \"ntk\"");
}

std::string rope_problem(const RopeOptions& options, int64_t K) {
  const auto R = rotated_width(options, K);
  const auto got = ", got " + std::to_string(K);
  if (options.fraction == 1 && K % 2 != 0) return "rope: expected an even head width" + got;
  if (R < 2) return "rope: expected a head width of which the fraction holds a pair" + got;
  if (options.scaling == "ntk" && R < 4)
    return "rope: expected a head width of which two pairs are rotated, for ntk" + got;
  return "";
}

Rope::Rope(const RopeOptions& options, Shape shape) : rotated_(rotated_width(options, shape->head_width)) {
  const auto problem = rope_problem(options, shape->head_width);
  if (!problem.empty()) throw ShapeError("position." + problem + "; choose another head_width");
  const auto R = static_cast<double>(rotated_);
  const auto base = options.scaling == "ntk" ? options.base * std::pow(options.factor, R / (R - 2)) : options.base;
  auto values = torch::pow(base, torch::arange(0, rotated_, 2, torch::kFloat64) / -R);
  if (options.scaling == "linear") values = values / options.factor;
  frequency = register_buffer("frequency", values.to(torch::get_default_dtype()));
}

Tensor turned(const Tensor& x_BHTK, const Tensor& angle, int64_t R) {
  const auto cos = angle.cos().to(x_BHTK.scalar_type()), sin = angle.sin().to(x_BHTK.scalar_type());
  const auto K = x_BHTK.size(-1);
  const auto rotated = R == K ? x_BHTK : x_BHTK.narrow(-1, 0, R);
  const auto pairs = rotated.unflatten(-1, {-1, 2}).unbind(-1);
  const auto y = torch::stack({pairs[0] * cos - pairs[1] * sin, pairs[0] * sin + pairs[1] * cos}, -1).flatten(-2);
  return R == K ? y : torch::cat({y, x_BHTK.narrow(-1, R, K - R)}, -1);
}

Tensor Rope::rotate(Tensor x_BHTK, const Tensor& positions) {
  auto angle = positions.unsqueeze(-1).to(frequency.scalar_type()) * frequency;  // [T,R/2], [B,T,R/2] or [B,H,T,R/2]
  if (positions.dim() == 2) angle = angle.unsqueeze(1);                          // one angle for all heads
  return turned(x_BHTK, angle, rotated_);
}

// In half precision a frequency would be off by a radian within a thousand positions.
void Rope::to(torch::Dtype dtype, bool non_blocking) { Position::to(at_least_float(dtype), non_blocking); }
void Rope::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  Position::to(device, at_least_float(dtype), non_blocking);
}

void rope_rule(const RopeOptions& options, const AttentionAround& around) {
  if (const auto problem = rope_problem(options, around.head_width); !problem.empty()) around.problem("", problem);
}

}  // namespace headlab
