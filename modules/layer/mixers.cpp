#include "modules/layer/mixers.h"

#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The attention as its options say.
struct PlainAttention : Attention {
  PlainAttention(const NoOptions&, const MixerPlace& place)
      : Attention(place.attention, place.width, place.width, /*cross=*/false, place.kept) {}
};

struct NgramInPlace : Ngram {
  NgramInPlace(const NgramOptions& options, const MixerPlace& place) : Ngram(options, place.width, place.causal, place.kept) {}
};

struct SeparateHeadsInPlace : SeparateHeads {
  SeparateHeadsInPlace(const SeparateHeadsOptions& options, const MixerPlace& place)
      : SeparateHeads(options, place.attention, place.width, place.kept) {}
};

}  // namespace

const Mixers& mixers() {
  static const Mixers registry = Mixers("mixer", "what lets the tokens of a text see each other")
                                     .entry<PlainAttention, NoOptions>("attention", "self-attention, as `attention` says", "1706.03762")
                                     .entry<NgramInPlace, NgramOptions>("ngram", "a matrix a head over neighbouring tokens, in place of attention", "2207.13354",
                                                                        {.no_weights = "the matrix over a window is the same for every token"})
                                     .entry<SeparateHeadsInPlace, SeparateHeadsOptions>("heads_by_length", "an attention of its own for texts of each length: the longer, the more heads", "2310.14505",
                                                                                        {.no_weights = "a head has weights of the texts of some lengths alone", .self_alone = true, .whole_text = true});
  return registry;
}
const Catalogue& mixer_catalogue() { return mixers().catalogue(); }

void mixer_rules(const Choice& mixer, const AttentionOptions& attention, int64_t width, const std::string& prefix, Problems& problems) {
  if (mixer.type() == "ngram") {
    if (const auto heads = mixer.as<NgramOptions>().heads; width % heads != 0)
      problems.add(prefix + ".mixer.heads", "expected a divisor of d_model (" + std::to_string(width) + "), got " + std::to_string(heads));
    return;  // `attention` counts for nothing there
  }
  if (mixer.type() == "heads_by_length") return separate_heads_rules(mixer.as<SeparateHeadsOptions>(), attention, width, prefix, problems);
  attention_rules(attention, width, false, prefix + ".attention", problems);
}

}  // namespace headlab
