#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct MyGateOptions : Described<MyGateOptions> {
  double initial = 2.0;
  void describe(Fields& fields) override { fields.add("initial", initial, "a of each head at the start"); }
};

/// A learned number a_h for each head says how far it is open: z_h -> sigmoid(a_h) z_h.          (where it is from,
/// which equation) z_BHTK -> z_BHTK.
class MyGate : public Gate {
 public:
  MyGate(const MyGateOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  /// Dimension 0 of `a` has one number a head: a removed head takes its own with it.
  void axes(HeadAxes axes) const override { axes.head("a", 0, 1); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  double initial_;
  Tensor a;  // [H]
};

}  // namespace headlab
