#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/terminal/format.h"

namespace headlab {

/// The counts from which a metric is computed. They are made sentence by sentence; the score of any collection of
/// sentences (the corpus, a resample of it, a subset) is the score of the sum of theirs.
using Counts = std::vector<int64_t>;

/// The sum, element by element; throws Error for an empty list.
Counts sum_of(const std::vector<Counts>& sentences);

/// References as sacreBLEU has them: references[r][i] is the r-th reference of sentence i. Throws Error unless there is
/// at least one reference set and each has as many sentences as there are hypotheses:
/// `bleu: expected as many references as hypotheses, got 2 hypotheses and 3 references`.
void check_layout(const std::string& metric, const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references);

/// The release of sacreBLEU whose scores and signatures the metrics equal.
inline constexpr const char* sacrebleu_version = "2.6.0";

}  // namespace headlab
