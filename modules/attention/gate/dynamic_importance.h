#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct DynamicImportanceOptions : Described<DynamicImportanceOptions> {
  bool rescale = true;
  double weight = 0.1;
  void describe(Fields& fields) override;
};

/// A second attention, over the heads' outputs, says for each token how much each head counts          (2108.01377)
///   q = W_q x_t,  k_h = W_k z_ht,  a_t = softmax_h(q . k_h / sqrt(K)),   z_ht -> H a_th z_ht
/// W_q [K,D] and W_k [K,K] are those of all heads, K the width of values; H heads that are there (`rescale`; false: 1),
/// which keeps the size of the sum over heads. Its loss, which drives importances away from uniform ones, is
///   "dynamic_importance": -weight * mean over real tokens of KL(a_t || uniform),   KL = sum_h a_th ln(H a_th) <= ln H
/// in training, of each attention. The abstract gives the idea; the formulas are our reading of it.
/// z_BHTK -> z_BHTK, x_BTD of the call (of a cross-attention: what asks). Importances are of at least 32 bits.
class DynamicImportance : public Gate {
 public:
  DynamicImportance(const DynamicImportanceOptions& options, Shape shape);
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  /// a_BHT of these outputs, which are what this gate gets.
  Tensor importances(const Tensor& z_BHTK, const Tensor& x_BTD) const {
    return torch::softmax(scores(z_BHTK, x_BTD), 1);
  }
  int64_t flops(int64_t T) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor scores(const Tensor& z_BHTK, const Tensor& x_BTD) const;
  DynamicImportanceOptions options_;
  Shape shape_;
  Tensor query_weight, key_weight;  // W_q, W_k
};

}  // namespace headlab
