#pragma once

#include "modules/attention/attention.h"
#include "modules/mixer/mixer.h"
#include "modules/tensor/registry.h"

namespace headlab {

/// Where a mixer stands in place of a layer's self-attention. kept: original numbers of the heads to make; nullopt: all.
struct MixerPlace {
  AttentionOptions attention;  // what the stack says of its attentions, for those that are or hold such
  int64_t width = 0;
  std::optional<std::vector<int64_t>> kept = std::nullopt;
  bool causal = false;  // whether its calls will be: of what has other parameters where tokens see both sides
};

using Mixers = Registry<Mixer, const MixerPlace&>;
const Mixers& mixers();
const Catalogue& mixer_catalogue();

/// The rules of what stands in a self-attention's place, the attention's own where it has one.
void mixer_rules(const Choice& mixer, const AttentionOptions& attention, int64_t width, const std::string& prefix, Problems& problems);

}  // namespace headlab
