#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// A claim that a run checks on its results:
///
///     {"claim": "pruning half the heads keeps BLEU", "that": "pruned.bleu", "at_least": "full.bleu - 3"}
///
/// Both sides are expressions over the results (src/spec/expression.h); a bound may be a number as well.
struct ExpectOptions : Described<ExpectOptions> {
  std::string claim, that;
  std::string control;                                                 // in words: what it is measured against
  std::optional<std::string> at_least, at_most, above, below, equals;  // exactly one
  std::optional<double> within;  // with equals: the largest difference that still is equal; absent: 0

  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// What came of one claim.
struct Verdict {
  std::string claim, that;
  std::string relation;  // "at_least", as in the spec
  std::string bound;     // its expression, as in the spec
  std::optional<double> within;
  double left = 0, right = 0;
  bool holds = false;  // false where a side is not a number (NaN)
  std::string control = {};
};

/// Checks one claim against results. Throws Error for a name that the results do not have; see Expression.
Verdict judge(const ExpectOptions& expectation, const nlohmann::ordered_json& results);

/// Whether a difference of `that` from the bound is on the side claimed.
bool relation_holds(const ExpectOptions& expectation, double difference);

nlohmann::ordered_json to_json(const Verdict& verdict);

/// "pruned.bleu >= full.bleu - 3" and "77.6 >= 75.4".
std::string expected_text(const Verdict& verdict);
std::string measured_text(const Verdict& verdict);

/// A claim as it is printed.
struct ClaimLine {
  std::string answer;  // "holds", "does not hold" or "not enough evidence"
  std::string expected, measured;
};

/// One line a claim, what was measured in one column: `holds          pruned.bleu >= full.bleu - 3   77.6 >= 75.4`.
std::string claim_text(const std::vector<ClaimLine>& lines);
std::string verdict_text(const std::vector<Verdict>& verdicts);

}  // namespace headlab
