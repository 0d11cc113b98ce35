#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/metrics/segments.h"

namespace headlab {

/// The score of summed counts: [&](const Counts& c) { return bleu.score(c).score; }.
using ScoreOf = std::function<double(const Counts&)>;

/// A mean and a 95 % interval: of the sorted scores of n resamples, the (n/40)-th from below and from above.
struct Interval {
  double mean = 0, low = 0, high = 0;
};

/// The scores of `n` resamples of the sentences, each drawn with replacement and as large as the original (Koehn,
/// "Statistical Significance Tests for Machine Translation Evaluation", EMNLP 2004). The same arguments give the same
/// result on every platform. Throws Error without sentences or with n < 1.
Interval bootstrap(const std::vector<Counts>& sentences, const ScoreOf& score, int64_t n, uint64_t seed);

/// How much better a system is than a baseline on the same sentences.
struct PairedResult {
  double difference = 0;  // score of the system - score of the baseline, on all sentences
  Interval interval;      // of that difference, over resamples that take the same sentences of both
  double p_value = 1;     // two-sided: share of resamples whose difference lies as far from their mean
};

/// Paired bootstrap; throws Error where the two lists differ in length (with both counts).
PairedResult paired_bootstrap(const std::vector<Counts>& baseline, const std::vector<Counts>& system,
                              const ScoreOf& score, int64_t n, uint64_t seed);

}  // namespace headlab
