#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct MyPositionOptions : Described<MyPositionOptions> {
  double initial = 0.1;
  void describe(Fields& fields) override { fields.add("initial", initial, "slope of each head at the start"); }
};

/// A learned slope m_h for each head: the score of the key at j for the query at i falls by m_h |i - j|.   (where it is
/// from, which equation) q_pos [T] or [B,T], k_pos [S] or [B,S] -> bias [1,H,T,S] or [B,H,T,S]. Throws ShapeError in a
/// cross-attention.
class MyPosition : public Position, public Initialised {
 public:
  MyPosition(const MyPositionOptions& options, Shape shape);
  bool has_bias() const override { return true; }
  Tensor bias(const Tensor& q_BHTK, const Tensor& q_pos, const Tensor& k_pos) override;
  bool learns_bias() const override { return at::GradMode::is_enabled() && slope.requires_grad(); }
  /// Dimension 0 of `slope` has one number a head: a removed head takes its own with it.
  void axes(HeadAxes axes) const override { axes.head("slope", 0, 1); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double initial_;
  Tensor slope;  // [H]
};

}  // namespace headlab
