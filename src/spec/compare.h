#pragma once

#include "src/spec/expect.h"

namespace headlab {

/// A claim about several arms of an experiment, checked over seeds:
///
///     "arms": {"dot": {}, "additive": {"model.encoder.attention.weigh.score": "additive"}},
///     "seeds": [1, 2, 3],
///     "compare": [{"claim": "additive is slower", "that": "additive.train.seconds", "above": "dot.train.seconds"}]
///
/// Each seed gives one difference, that - bound. The claim holds where the 95 % interval of its mean (Student's t over
/// the seeds) lies wholly on the side claimed: at_least and at_most may touch 0, equals must lie within +-`within`. It
/// does not hold where the interval lies wholly on the other side; where it lies on both, there is not enough evidence,
/// and more seeds would tell.
struct CompareOptions : ExpectOptions {
  std::shared_ptr<Options> copy() const override { return std::make_shared<CompareOptions>(*this); }
};

/// What came of it.
struct Comparison {
  Verdict verdict;                           // left and right are means over the seeds
  std::vector<double> differences;           // left - right, one a seed
  double difference = 0, low = 0, high = 0;  // their mean and its interval
  bool undecided = false;                    // the interval lies on both sides
  std::string answer() const;                // "holds", "does not hold", "not enough evidence"
};

/// `results`: one object a seed, {arm: what claims about a run can name}. Throws Error for unknown names, see
/// Expression.
Comparison compare(const CompareOptions& claim, const std::vector<nlohmann::ordered_json>& results);

nlohmann::ordered_json to_json(const Comparison& comparison);

/// "1.32 > 1.20; difference +0.12 (+0.08 to +0.16), 3 seeds".
std::string measured_text(const Comparison& comparison);

/// One line a claim, as verdict_text.
std::string comparison_text(const std::vector<Comparison>& comparisons);

}  // namespace headlab
