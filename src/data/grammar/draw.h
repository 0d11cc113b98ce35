#pragma once

#include <cstddef>
#include <vector>

#include "modules/base/random.h"

namespace headlab::grammar {

// Draws by integers alone, so that a seed gives the same on every platform.

inline bool chance(Random& random, uint64_t percent) { return random.below(100) < percent; }

template <class T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[random.below(from.size())];
}

/// An index, drawn in proportion to its weight.
inline std::size_t weighted(Random& random, const std::vector<std::size_t>& weights) {
  std::size_t total = 0;
  for (std::size_t weight : weights) total += weight;
  std::size_t draw = random.below(total), index = 0;
  while (draw >= weights[index]) draw -= weights[index++];
  return index;
}

}  // namespace headlab::grammar
