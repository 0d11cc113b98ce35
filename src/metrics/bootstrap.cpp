#include "src/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "modules/base/error.h"
#include "modules/base/random.h"

namespace headlab {
namespace {

void check(std::size_t sentences, int64_t n) {
  if (sentences == 0) throw Error("bootstrap: expected at least one sentence, got none");
  if (n < 1) throw Error("bootstrap: expected at least one resample, got " + std::to_string(n));
}

std::vector<std::size_t> draw(std::size_t size, Random& random) {
  std::vector<std::size_t> indices(size);
  for (std::size_t& i : indices) i = static_cast<std::size_t>(random.below(size));
  return indices;
}

double score_of(const std::vector<Counts>& sentences, const std::vector<std::size_t>& indices, const ScoreOf& score) {
  Counts total(sentences.front().size(), 0);
  for (const std::size_t i : indices) {
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += sentences[i][k];
  }
  return score(total);
}

Interval interval_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const std::size_t cut = scores.size() / 40;
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  return {sum / static_cast<double>(scores.size()), scores[cut], scores[scores.size() - cut - 1]};
}

}  // namespace

Interval bootstrap(const std::vector<Counts>& sentences, const ScoreOf& score, int64_t n, uint64_t seed) {
  check(sentences.size(), n);
  Random random(seed);
  std::vector<double> scores;
  for (int64_t i = 0; i < n; ++i) scores.push_back(score_of(sentences, draw(sentences.size(), random), score));
  return interval_of(std::move(scores));
}

PairedResult paired_bootstrap(const std::vector<Counts>& baseline, const std::vector<Counts>& system,
                              const ScoreOf& score, int64_t n, uint64_t seed) {
  if (baseline.size() != system.size()) {
    throw Error("paired bootstrap: expected the same sentences of both, got " + std::to_string(baseline.size()) +
                " of the baseline and " + std::to_string(system.size()) + " of the system");
  }
  check(baseline.size(), n);
  Random random(seed);
  std::vector<double> differences;
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<std::size_t> indices = draw(baseline.size(), random);
    differences.push_back(score_of(system, indices, score) - score_of(baseline, indices, score));
  }
  PairedResult result;
  result.difference = score(sum_of(system)) - score(sum_of(baseline));
  result.interval = interval_of(differences);
  // Shifted to mean 0 the resamples show what differences chance alone makes.
  const auto beyond = std::count_if(differences.begin(), differences.end(), [&](double d) {
    return std::abs(d - result.interval.mean) >= std::abs(result.difference);
  });
  result.p_value = static_cast<double>(beyond + 1) / static_cast<double>(n + 1);
  return result;
}

}  // namespace headlab
