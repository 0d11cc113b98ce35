#pragma once

#include "modules/attention/gate/hard_concrete.h"

namespace headlab {

struct L0RoundOptions : HardConcreteOptions {
  bool scale_output = true;
  L0RoundOptions() { temperature = 0.333; }
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<L0RoundOptions>(*this); }
};

/// Hard-concrete gates that are rounded: a head is in or out, in training too          (2110.03252, section 3)
///   s = sigmoid((log u - log(1-u) + alpha) / beta) in training, sigmoid(alpha) in evaluation; beta is `temperature`
///   g = 1 where clip(s (zeta-gamma) + gamma, 0, 1) >= 1/2, else 0; backward the rounding is the identity
///   penalty: as hard_concrete's, the aux loss "l0_round"
/// z_BHTK -> g_h H / n z_BHTK with H original heads, n of them open (`scale_output`; n is a constant in the backward
/// pass), so that the sum over heads keeps its size. At evaluation a gate is closed where alpha < 0 (for zeta = 1 -
/// gamma). What removal takes is as if masked: an open head that was removed still counts in n, a closed one never did.
///
/// Where alpha is held fixed (rates with factor 0) gates stand as they do in evaluation: no noise and no penalty.
class L0Round : public HardConcrete {
 public:
  L0Round(const L0RoundOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void keep(const std::vector<int64_t>& positions) override;
  Tensor gate(const Tensor& u_H = {}) const override;

 private:
  bool scale_output_;
  double original_heads_;
  Tensor removed_open;  // [1], how many heads were removed whose gates were open
};

}  // namespace headlab
