#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct WeighOptions : Described<WeighOptions> {
  Choice score{score_catalogue, "dot_product"};
  Choice normalise{normalise_catalogue, "softmax"};
  double dropout = 0.0;
  void describe(Fields& fields) override {
    fields.add("score", score, "how queries and keys are compared");
    fields.add("normalise", normalise, "how a row of scores becomes weights");
    fields.add("dropout", dropout, "share of weights dropped in training").at_least(0).below(1);
  }
};

/// z_BHTK = sum_S normalise_S(score(q_BHTK, k_BHSK) + bias_BHTS, hidden keys -inf) v_BHSK      (1706.03762, eq. 1)
/// A row with nothing to attend to gives zeros, and gradients that are zero.
/// Heads are cut into blocks of equal window and equal group ratio; each block is one call of LibTorch's
/// scaled_dot_product_attention where the score is a scaled dot product, the normaliser softmax, and nobody asks for
/// scores or weights. A causal block much shorter than the text pays for its window, not for the text.
class Weigh : public torch::nn::Module {
 public:
  Weigh(const WeighOptions& options, Shape shape);

  /// q_BHTK, k_BGSK, v_BGSK; group_of: for each head of q the group it reads. `from_start`: the queries are all S
  /// tokens. Where call.ahead keys stand before the context's, `bias` is of the context's alone.
  Tensor forward(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK, const std::vector<int64_t>& group_of,
                 const HeadPlan& plan, const Tensor& bias, const AttentionCall& call, bool from_start);

  /// True where a pass like `run`, in the present mode, uses LibTorch's fused kernel: no dropout of weights and no bias
  /// that learns (`bias_learns`), for which it falls back to products of its own.
  bool fusable(Site site, const Forward& run, bool bias_learns = false) const;
  int64_t flops(int64_t T, int64_t S, int64_t slots, int64_t pairs, int64_t value_width) const {
    return score->flops(T, S, slots, pairs) + 2 * pairs * value_width;
  }
  void axes(HeadAxes axes) const { score->axes(axes.under("score.")); }

 private:
  bool in_one_call(Site site, const Forward& run) const;
  Tensor one_block(const HeadBlock& block, const AttentionCall& call, bool from_start);
  Tensor instrumented(const std::vector<HeadBlock>& blocks, const AttentionCall& call, bool from_start,
                      const std::vector<int64_t>& order);
  double dropout_;
  std::shared_ptr<Score> score{nullptr};
  std::shared_ptr<Normalise> normalise{nullptr};
};

/// Heads of equal window over groups of equal ratio, in as few blocks as there are such kinds.
std::vector<HeadBlock> cut_blocks(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK,
                                  const std::vector<int64_t>& group_of, const std::vector<int64_t>& window_H);

/// The entries at `positions` of a dimension, in that order, by slices alone: no index tensor that would fix a device.
Tensor pick(const Tensor& x, int64_t dim, const std::vector<int64_t>& positions);

/// 0, 1, ... along the tokens of x_BHNK, long [N]; while recording without N as a number.
Tensor places_of(const Tensor& x_BHNK);

/// bool, broadcastable to [B,1,T,S], true: visible; undefined: everything is. The first `ahead` keys are not the
/// context's, and always visible: of them `see` and the window say nothing.
Tensor visible(const Tensor& q_BHTK, const Tensor& k_BGSK, const Visibility& see, int64_t window, bool from_start,
               int64_t ahead = 0);

/// Attention to keys less than `window` away (causal: not after the query), by blocks of queries over the keys that one
/// of them sees: O(T window K) where a mask costs O(T T K). q_BHTK, k_BGSK, v_BGSK with T = S -> z_BHTK; every block
/// sees `ahead` more keys that stand before these. Of `see`, `causal` and `key_mask_BS` count; a query that sees no key
/// gives zeros.
Tensor windowed_attention(const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK, const Visibility& see,
                          int64_t window, double factor, int64_t ahead = 0);

/// Keys that a block of it reads: what a text must be longer than, for blocks to pay.
int64_t windowed_span(int64_t window, bool causal);

}  // namespace headlab
