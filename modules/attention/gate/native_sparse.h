#pragma once

#include "modules/attention/slots.h"
#include "modules/tensor/updated.h"

namespace headlab {

struct NativeSparseOptions : Described<NativeSparseOptions> {
  int64_t active = 2, shared = 0;
  std::optional<int64_t> window;
  std::string positions = "own", balance = "fp";
  double weight = 0.001, importance = 1, load = 1, rate = 0.001;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Each token picks `active` of the heads, and a head sees the tokens alone that picked it          (NAMOH, 2609.38832)
///   a_t = softmax(x_t W_r) over the heads that are not shared,  S_t = the `active` largest of a_t,  m_ti = [i in S_t]
///   z_ti = m_ti a_ti sum over s with m_si = 1 of weights_ts v_si       (a is not divided by the sum over the chosen)
/// Where keys and values are grouped, tokens pick groups of heads, and what is said of heads here is said of groups.
///   shared     the first so many, beside the `active` ones: they keep every token, with weight 1; where there is a
///              `window`, they see no key further away
///   positions  "own": what rotates gets rho_i(t) = sum_{s <= t} m_si - 1, a token's place among those of its head
///              (for a shared head its place in the text); "global": the places in the text
/// balance, over real tokens alone, M the heads to pick from, `weight` before each loss (one of each attention):
///   fp         M sum_i f_i p_i, f_i the share of picks that fell on i (a constant in the backward pass), p_i the
///              mean of a_ti; 1 where either is uniform
///   cv         importance CV^2(sum_t a_ti) + load CV^2(sum_t P_ti). In training heads are picked by logits with noise,
///              l + softplus(x W_n) e with e of N(0,1), and P_ti is the probability that another e_ti would have i
///              picked still (1701.06538, appendix A; that the weights stay those without noise is inferred)
///   loss_free  picked by a + b; after each optimiser step b_i += rate sign(mean load - load of i). b is a buffer;
///              there is no loss
/// W_r is [groups, D], Glorot-uniform; W_n [groups, D] and b [groups] are zero at first. Shared heads have rows that
/// nothing uses.
///
/// What is computed, with a projection that can (standard, grouped), no adapters, and positions that rotate: queries,
/// keys, values and scores of the tokens that a head keeps, and, where no other gate and no shared head is there, their
/// part of the output alone (weigh/kept.h). A head that keeps more than half of a text is masked. Else, and for short
/// texts, recordings, dropout of weights and taps of what is not there otherwise, all tokens of all heads with a mask;
/// long texts have their scores packed even so. A step of decoding projects all heads of its one token, and compares
/// those that it picked. A cache has room for the most that any head keeps of any text, all tokens for shared heads;
/// cache_numbers() and flops() count what kept tokens need, at equal loads. In self-attentions; throws ShapeError in a
/// cross-attention, and for more active and shared heads than there are.
class NativeSparse : public Gate, public Updated {
 public:
  NativeSparse(const NativeSparseOptions& options, Shape shape);
  void plan(HeadPlan& plan, const AttentionCall& call) override;
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override;
  bool routes() const override { return true; }
  void outline(HeadOutline& outline) const override;
  int64_t flops(int64_t T) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;
  void update(Site site, const std::map<std::string, Tensor>& stats) override;
  std::vector<double> kept_H() const override;
  /// How many of the groups that are there are shared: the first ones.
  int64_t shared() const;

 private:
  /// Of the tokens that ask, over the heads that are not shared.
  struct Routing {
    Tensor logits_BTE, noisy_BTE, deviation_BTE, a_BTE, picked_BTE;  // noise: undefined without
  };
  /// How many of the others a token picks.
  int64_t picked() const;
  std::vector<int64_t> windows() const;
  Tensor logits(const Tensor& x_BTD, const Tensor& matrix) const;
  void learn(const Routing& routed, const AttentionCall& call) const;
  NativeSparseOptions options_;
  Shape shape_;
  Tensor weight, noise_weight, bias;  // W_r, W_n, b
};

void native_sparse_rule(const NativeSparseOptions& options, const AttentionAround& around);

}  // namespace headlab
