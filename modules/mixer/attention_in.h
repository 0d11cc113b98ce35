#pragma once

#include "modules/attention/attention.h"

namespace headlab {

/// The attention that a mixer is, or that it has beside heads of another kind; nullptr: none. Its heads, by their
/// original numbers, are those with attention weights.
const Attention* attention_in(const Mixer& mixer);

}  // namespace headlab
