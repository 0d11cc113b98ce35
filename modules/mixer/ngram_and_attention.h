#pragma once

#include <utility>

#include "modules/attention/attention.h"
#include "modules/mixer/ngram.h"

namespace headlab {

struct NgramAndAttentionOptions : Described<NgramAndAttentionOptions>, NgramStyle {
  int64_t heads = 4;
  void describe(Fields& fields) override;
};

/// Heads of both kinds in one layer: n-gram heads beside attention heads          (2207.13354; "per head" inferred)
///   y = sum_{h < H - M} z_h W_O^h + b_O + sum_{h >= H - M} z_h W_O^h
/// H = the attention's `heads`, of which the last M (`heads` here) are n-gram heads: head h is that of mixer/ngram
/// which reads the h-th of H chunks of x, K = D / H wide. The others are the heads of the layer's attention with all
/// that its options say; to it, n-gram heads are heads that were removed. One matrix W_O [D, D] in two parts: the
/// columns of n-gram heads stand in "ngram.mix", the others and b_O in "attention.mix". Where that is another mix, the
/// n-gram heads' sum is added to what it gives.
///
/// Heads are one list of numbers 0 to H - 1: for scales, removal, and taps of z and o, which see the attention's first.
/// Taps of q, k, v, scores and weights see the attention's heads alone. Since heads of two kinds have parameters of two
/// shapes, axes() names no stretch: heads are removed in parameters, but no entry is told as a head's.
/// A cache is the n-gram heads' last N - 1 frames, and behind them the attention's.
/// x_BTD -> y_BTD. Throws ShapeError where values are not D / H wide.
class NgramAndAttention : public Mixer {
 public:
  /// `kept`: original numbers of the heads to make; nullopt: all.
  NgramAndAttention(const NgramAndAttentionOptions& options, const AttentionOptions& attention, int64_t width,
                    bool causal, const std::optional<std::vector<int64_t>>& kept = std::nullopt);
  Tensor forward(const AttentionCall& call) override;
  const std::vector<int64_t>& heads() const override { return heads_; }
  int64_t original_heads() const override { return attention->original_heads(); }
  void keep(const std::vector<int64_t>& heads) override;
  HeadAxes axes() const override { return {}; }
  int64_t flops(int64_t T, int64_t S, bool causal) const override;
  int64_t cache_numbers() const override { return attention->cache_numbers(); }
  void absorb() override { attention->absorb(); }
  const Attention& of_attention() const { return *attention; }

 private:
  /// The attention's heads and the n-gram heads.
  std::pair<std::vector<int64_t>, std::vector<int64_t>> split(std::vector<int64_t> heads) const;
  void count_heads();
  int64_t first_;  // number of the first n-gram head
  bool keeps_frames_;
  std::vector<int64_t> heads_;
  std::shared_ptr<Attention> attention{nullptr};
  std::shared_ptr<Ngram> ngram{nullptr};
};

/// What the layer's attention can't have beside n-gram heads.
std::vector<Clash> ngram_and_attention_clashes();

/// Those of the layer's attention, and what it can't be beside n-gram heads. `layer`: where the layer's options stand.
void ngram_and_attention_rules(const NgramAndAttentionOptions& options, const AttentionOptions& attention,
                               int64_t width, const std::string& layer, Problems& problems);

}  // namespace headlab
