#include "modules/attention/weigh/sparsemax.h"

#include <limits>

#include "modules/tensor/torch.h"

namespace headlab {

Tensor Sparsemax::weights(const Tensor& scores_BHTS) {
  const auto hidden = scores_BHTS.eq(-std::numeric_limits<double>::infinity());
  // The same for scores moved together: the largest becomes 0, and what lies 1 or more below it has no weight anyway.
  const auto below = scores_BHTS.masked_fill(hidden, 0) - scores_BHTS.detach().amax(-1, true);
  const auto z = below.masked_fill(hidden, -2).clamp_min(-2);
  const auto falling = std::get<0>(z.sort(/*dim=*/-1, /*descending=*/true));
  const auto sums = falling.cumsum(-1);
  const auto k = torch::ones_like(falling).cumsum(-1);
  const auto support = (1 + k * falling).gt(sums).sum(-1, true);  // at least 1
  const auto tau = (sums.gather(-1, support - 1) - 1) / support;
  return (z - tau).clamp_min(0).masked_fill(hidden, 0);
}

}  // namespace headlab
