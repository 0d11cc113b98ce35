#include "src/decode/sampling.h"

#include <algorithm>
#include <cmath>

namespace headlab {

std::vector<Likely> likely_tokens(const double* log_p_V, int64_t V, const Sampling& sampling) {
  std::vector<Likely> likely;  // `probability` holds the logarithm until all are chosen
  for (int64_t id = 0; id < V; ++id)
    if (std::isfinite(log_p_V[id])) likely.push_back({id, log_p_V[id]});
  if (likely.empty()) return likely;
  const auto before = [](const Likely& a, const Likely& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  };
  const bool cut = sampling.top_k > 0 && sampling.top_k < static_cast<int64_t>(likely.size());
  if (cut) {
    std::partial_sort(likely.begin(), likely.begin() + sampling.top_k, likely.end(), before);
    likely.resize(static_cast<std::size_t>(sampling.top_k));
  } else if (sampling.top_p < 1) {
    std::sort(likely.begin(), likely.end(), before);
  }
  const auto most = std::max_element(likely.begin(), likely.end(), [](const auto& a, const auto& b) {
                      return a.probability < b.probability;
                    })->probability;
  const auto normalise = [&likely] {
    double sum = 0;
    for (const auto& each : likely) sum += each.probability;
    for (auto& each : likely) each.probability /= sum;
  };
  for (auto& each : likely) each.probability = std::exp((each.probability - most) / sampling.temperature);
  normalise();
  if (sampling.top_p >= 1) return likely;
  double sum = 0;
  std::size_t kept = 0;
  while (kept < likely.size() && sum < sampling.top_p) sum += likely[kept++].probability;
  likely.resize(kept);
  normalise();
  return likely;
}

int64_t draw(const std::vector<Likely>& likely, Random& random) {
  const auto at = random.uniform();
  double sum = 0;
  for (const auto& each : likely)
    if ((sum += each.probability) > at) return each.id;
  return likely.back().id;  // the sum may be a rounding error below 1
}

}  // namespace headlab
