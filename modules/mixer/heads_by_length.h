#pragma once

#include "modules/attention/attention.h"
#include "modules/attention/length_bins.h"

namespace headlab {

struct SeparateHeadsOptions : Described<SeparateHeadsOptions>, LengthBins {
  void describe(Fields& fields) override { describe_bins(fields); }
  void rules(Problems& problems) const override { bin_rules(problems); }
};

/// An attention of its own for texts of each length: the longer they are, the more heads, each K = D / heads wide, so
/// that all have as many parameters          (AdaptAttn, 2310.14505; the abstract gives 2, 4 or 8 heads by length,
/// the rest is inferred)
///   y of a text = attention_i(x), i its length's number
/// Options are those of the layer's attention but for its heads. gate/heads_by_length has one attention with heads
/// that close.
///
/// Head h of this mixer is the h-th head of each attention that has so many: it is scaled, masked and removed in all
/// of them at once. Each attention reads the texts of its length alone, one after another; where taps want what
/// stands inside, or a model is recorded, each reads all texts, what a tap sees is that attention's (its texts and
/// others), and a text's y is taken from its own. Since attentions of one site differ in heads and widths, axes()
/// names no stretch: heads are removed in parameters, but no entry is told as a head's.
/// In what reads a whole text: throws UsageError in a causal pass. x_BTD -> y_BTD.
class SeparateHeads : public Mixer {
 public:
  /// `kept`: original numbers of the heads to make; nullopt: all.
  SeparateHeads(const SeparateHeadsOptions& options, const AttentionOptions& attention, int64_t width,
                const std::optional<std::vector<int64_t>>& kept = std::nullopt);
  Tensor forward(const AttentionCall& call) override;
  const std::vector<int64_t>& heads() const override { return heads_; }
  int64_t original_heads() const override;
  void keep(const std::vector<int64_t>& heads) override;
  HeadAxes axes() const override { return {}; }
  /// Of a text of S tokens: of its attention.
  int64_t flops(int64_t T, int64_t S, bool causal) const override;
  /// Those of the attention that has most: nothing is cached in what reads whole texts.
  int64_t cache_numbers() const override;
  void absorb() override;
  const std::vector<std::shared_ptr<Attention>>& attentions() const { return attentions_; }
  const LengthBins& bins() const { return options_; }

 private:
  SeparateHeadsOptions options_;
  std::vector<int64_t> heads_;
  std::vector<std::shared_ptr<Attention>> attentions_;
};

/// What the layer's attention becomes for texts with so many heads.
AttentionOptions with_heads(AttentionOptions attention, int64_t heads);

/// The rules of each of its attentions.
void separate_heads_rules(const SeparateHeadsOptions& options, const AttentionOptions& attention, int64_t width,
                          const std::string& prefix, Problems& problems);

}  // namespace headlab
