#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct HardConcreteOptions : Described<HardConcreteOptions> {
  double temperature = 0.33, stretch_low = -0.1, stretch_high = 1.1, initial = 2.0, penalty = 0.0;
  void describe(Fields& fields) override;
};

/// A stochastic gate for each head that can be exactly 0 or 1          (1712.01312; for heads 1905.09418, section 4)
///   training:    u ~ U(0,1), c = sigmoid((log u - log(1-u) + log_alpha) / tau), g = clip(c (zeta-gamma) + gamma, 0, 1)
///   evaluation:  c = sigmoid(log_alpha), the same g
///   penalty:     sum_h P(g_h != 0) = sum_h sigmoid(log_alpha_h - tau log(-gamma/zeta)), times `penalty`, as an aux
///   loss
/// z_BHTK -> g_h z_BHTK. One draw a forward pass and head, the same for all tokens.
class HardConcrete : public Gate {
 public:
  HardConcrete(const HardConcreteOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("log_alpha", 0, 1); }
  std::vector<int64_t> closed() const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

  /// The gates for uniform numbers u_H; u undefined: without noise.
  virtual Tensor gate(const Tensor& u_H = {}) const;
  Tensor probability_open() const;  // P(g != 0), [H]

 protected:
  /// A pass's numbers u_H in training, where it also adds the penalty by this name; undefined in evaluation.
  Tensor noise(const std::string& name, const AttentionCall& call) const;
  Tensor log_alpha;  // [H]

 private:
  HardConcreteOptions options_;
};

}  // namespace headlab
