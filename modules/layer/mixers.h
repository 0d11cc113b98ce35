#pragma once

#include "modules/attention/attention.h"
#include "modules/mixer/mixer.h"
#include "modules/tensor/registry.h"

namespace headlab {

/// Where a mixer stands in place of a layer's self-attention. kept: original numbers of the heads to make; nullopt:
/// all.
struct MixerPlace {
  AttentionOptions attention;  // what the stack says of its attentions, for those that are or hold such
  int64_t width = 0;
  std::optional<std::vector<int64_t>> kept = std::nullopt;
  bool causal = false;  // whether its calls will be: of what has other parameters where tokens see both sides
};

/// The layer in whose options a mixer stands, for its rule.
struct MixerAround : Around {
  std::string layer;  // where the options of its stack or layer stand: "encoder"
  const AttentionOptions& attention;
  int64_t width = 0;
  MixerAround(const std::string& layer, const AttentionOptions& attention, int64_t width, Problems& problems)
      : Around(layer + ".mixer", problems), layer(layer), attention(attention), width(width) {}
};

using Mixers = Registry<Mixer, const MixerPlace&>;
const Mixers& mixers();
const Catalogue& mixer_catalogue();

/// The rules of what stands in a self-attention's place, the attention's own where it has one.
void mixer_rules(const Choice& mixer, const AttentionOptions& attention, int64_t width, const std::string& prefix,
                 Problems& problems);

}  // namespace headlab
