#pragma once

#include "modules/layer/block.h"

namespace headlab {

/// What can't stand in a layer that is causal, since it goes by the length of the whole text. `prefix`: where the
/// layer's options stand, "decoder".
void causal_rules(const Choice& mixer, const AttentionOptions& attention, const std::string& prefix, Problems& problems);

/// The same of each layer of a stack.
template <class Options>
void causal_stack_rules(const Options& stack, const std::string& prefix, Problems& problems) {
  causal_rules(stack.mixer, stack.attention, prefix, problems);
  for (std::size_t i = 0; i < stack.per_layer.size(); ++i)
    causal_rules(stack.per_layer[i].mixer, stack.per_layer[i].attention, prefix + ".per_layer[" + std::to_string(i) + "]", problems);
}

}  // namespace headlab
