#pragma once

#include <string>
#include <vector>

#include "modules/layer/block.h"

namespace headlab {

/// A mixer of a layer, or a gate of its self-attention, and where it stands: "decoder.per_layer[0].attention.gates[1]".
struct PlacedEntry {
  std::string field, type;
  bool whole_text = false;  // its trait
};

void add_placed(const Choice& mixer, const AttentionOptions& attention, const std::string& prefix,
                std::vector<PlacedEntry>& all);

/// Those of a stack whose options stand at `prefix`, "decoder".
template <class Options>
std::vector<PlacedEntry> mixers_and_gates(const Options& stack, const std::string& prefix) {
  std::vector<PlacedEntry> all;
  add_placed(stack.mixer, stack.attention, prefix, all);
  for (std::size_t i = 0; i < stack.per_layer.size(); ++i)
    add_placed(stack.per_layer[i].mixer, stack.per_layer[i].attention, prefix + ".per_layer[" + std::to_string(i) + "]",
               all);
  return all;
}

/// What can't stand in causal layers, since it goes by the length of the whole text.
void causal_rules(const std::vector<PlacedEntry>& entries, Problems& problems);

/// What can't stand where a text is read by segments, since it must see a text in one call.
void segment_rules(const std::vector<PlacedEntry>& entries, Problems& problems);

}  // namespace headlab
