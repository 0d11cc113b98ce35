#pragma once

#include <cstdint>
#include <vector>

#include "modules/base/random.h"

namespace headlab {

/// How a token is drawn from a model's log-probabilities.
struct Sampling {
  double temperature = 1;  // above 0
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // in (0, 1]; 1: all
};

struct Likely {
  int64_t id;
  double probability;
};

/// What a token is drawn from: ids of V log-probabilities (-inf: never) and what is left of their probabilities, which
/// sum to 1.
///
///   p_i is proportional to exp(log_p_i / temperature)
///   top_k   the k most probable; where equals compete for the last place, the lower id wins          (1805.04833)
///   top_p   of what top_k left, the fewest most probable ids whose probabilities sum to at least p: the one that
///           reaches p is kept, so that there is always one                                           (1904.09751, eq.
///           3)
///
/// The most probable comes first, the lower id of equals, unless nothing is cut off; then ids come in their order.
/// Empty where every log-probability is -inf.
std::vector<Likely> likely_tokens(const double* log_p_V, int64_t V, const Sampling& sampling);

/// One of them: the first whose cumulative probability exceeds a uniform number; `likely` must not be empty.
int64_t draw(const std::vector<Likely>& likely, Random& random);

}  // namespace headlab
