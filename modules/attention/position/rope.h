#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct NoPosition : Position {
  NoPosition(const NoOptions&, Shape) {}
};

struct RopeOptions : Described<RopeOptions> {
  double base = 10000, fraction = 1, factor = 1;
  std::string scaling = "none";
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Rotates each pair (x_2i, x_2i+1) of the first R numbers of q and k by an angle p w_i, p the position, so that scores
/// depend on distance alone; the other K - R numbers stay as they are.          (2104.09864, eq. 15)
///   R = the largest even number up to fraction * K,   w_i = base^(-2i/R),  i = 0 .. R/2 - 1
/// For texts longer than those of training, by a factor s >= 1:
///   linear   w_i / s: all positions are squeezed into the trained range          (2306.15595, eq. 4)
///   ntk      the base becomes base * s^(R/(R-2)): the fastest pair turns as before, the slowest s times more slowly
///            (2309.00071, section 3.1)
/// x_BHTK, positions [T] or [B,T] -> x_BHTK, in the type of x; angles are never of less than 32 bits.
/// Throws ShapeError where rope_problem() finds one.
class Rope : public Position {
 public:
  Rope(const RopeOptions& options, Shape shape);
  Tensor rotate(Tensor x_BHTK, const Tensor& positions) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  using Position::to;

 private:
  int64_t rotated_;  // R
  Tensor frequency;  // [R/2], radians a position
};

/// Turns each pair (x_2i, x_2i+1) of the first R numbers of x_BHTK by its angle [..., T, R/2]; the others stay.
Tensor turned(const Tensor& x_BHTK, const Tensor& angle, int64_t R);

/// Why a head of width K can't be rotated so; empty: it can.
std::string rope_problem(const RopeOptions& options, int64_t K);

void rope_rule(const RopeOptions& options, const AttentionAround& around);

}  // namespace headlab
