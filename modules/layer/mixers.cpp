#include "modules/layer/mixers.h"

#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram.h"
#include "modules/mixer/ngram_and_attention.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The attention as its options say.
struct PlainAttention : Attention {
  PlainAttention(const NoOptions&, const MixerPlace& place)
      : Attention(place.attention, place.width, place.width, /*cross=*/false, place.kept) {}
};

struct NgramInPlace : Ngram {
  NgramInPlace(const NgramOptions& options, const MixerPlace& place)
      : Ngram(options, place.width, place.causal, place.kept) {}
};

struct NgramAndAttentionInPlace : NgramAndAttention {
  NgramAndAttentionInPlace(const NgramAndAttentionOptions& options, const MixerPlace& place)
      : NgramAndAttention(options, place.attention, place.width, place.causal, place.kept) {}
};

struct SeparateHeadsInPlace : SeparateHeads {
  SeparateHeadsInPlace(const SeparateHeadsOptions& options, const MixerPlace& place)
      : SeparateHeads(options, place.attention, place.width, place.kept) {}
};

void plain_rule(const NoOptions&, const MixerAround& around) {
  attention_rules(around.attention, around.width, false, around.layer + ".attention", around.problems);
}

void ngram_in_place_rule(const NgramOptions& options, const MixerAround& around) {
  if (around.width % options.heads != 0)
    around.problem("heads", "expected a divisor of d_model (" + std::to_string(around.width) + "), got " +
                                std::to_string(options.heads));
}

void ngram_and_attention_in_place_rule(const NgramAndAttentionOptions& options, const MixerAround& around) {
  ngram_and_attention_rules(options, around.attention, around.width, around.layer, around.problems);
}

void separate_heads_in_place_rule(const SeparateHeadsOptions& options, const MixerAround& around) {
  separate_heads_rules(options, around.attention, around.width, around.layer, around.problems);
}

}  // namespace

const Mixers& mixers() {
  static const Mixers registry =
      Mixers("mixer", "what lets the tokens of a text see each other")
          .entry<PlainAttention, NoOptions>("attention", "self-attention, as `attention` says", "1706.03762")
          .rule(plain_rule)
          .entry<NgramInPlace, NgramOptions>("ngram", "a matrix a head over neighbouring tokens, in place of attention",
                                             "2207.13354",
                                             {.no_weights = "the matrix over a window is the same for every token"})
          .rule(ngram_in_place_rule)
          .entry<NgramAndAttentionInPlace, NgramAndAttentionOptions>(
              "ngram_and_attention", "n-gram heads and attention heads in one layer", "2207.13354",
              {.clashes = ngram_and_attention_clashes()})
          .rule(ngram_and_attention_in_place_rule)
          .entry<SeparateHeadsInPlace, SeparateHeadsOptions>(
              "heads_by_length", "an attention of its own for texts of each length: the longer, the more heads",
              "2310.14505",
              {.no_weights = "a head has weights of the texts of some lengths alone",
               .self_alone = true,
               .whole_text = true})
          .rule(separate_heads_in_place_rule);
  return registry;
}
const Catalogue& mixer_catalogue() { return mixers().catalogue(); }

void mixer_rules(const Choice& mixer, const AttentionOptions& attention, int64_t width, const std::string& prefix,
                 Problems& problems) {
  mixers().check(mixer, MixerAround(prefix, attention, width, problems));
}

}  // namespace headlab
