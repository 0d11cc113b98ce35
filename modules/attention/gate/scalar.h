#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct ScalarGateOptions : Described<ScalarGateOptions> {
  double initial = 1.0;
  void describe(Fields& fields) override { fields.add("initial", initial, "the scale of each head at the start"); }
};

/// A learned number for each head: z_h -> (1 + change_h) z_h.          (attention head reweighting, 2607.13425)
/// The parameter is the change, so that what keeps parameters small keeps heads as they were. `initial` is 1 + change
/// at first.
class ScalarGate : public Gate {
 public:
  ScalarGate(const ScalarGateOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("change", 0, 1); }
  /// 1 + change, [H]
  Tensor scale() const { return 1 + change; }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double initial_;
  Tensor change;  // [H]
};

}  // namespace headlab
