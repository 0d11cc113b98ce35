#include "src/spec/compare.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/metrics/interval.h"

namespace headlab {
namespace {

std::string signed_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.4g", value);
  return text;
}

}  // namespace

Comparison compare(const CompareOptions& claim, const std::vector<nlohmann::ordered_json>& results) {
  if (results.empty()) throw Error("compare: no seed has results of every arm");
  Comparison made;
  for (const auto& of_seed : results) {
    const auto one = judge(claim, of_seed);
    if (made.differences.empty())
      made.verdict = one;
    else {
      made.verdict.left += one.left;
      made.verdict.right += one.right;
    }
    made.differences.push_back(one.left - one.right);
  }
  const auto n = static_cast<double>(results.size());
  made.verdict.left /= n;
  made.verdict.right /= n;
  const auto interval = mean_interval(made.differences);
  made.difference = interval.mean;
  made.low = interval.low;
  made.high = interval.high;
  made.verdict.holds = relation_holds(claim, made.low) && relation_holds(claim, made.high);
  // Whether a difference within the interval would do: its ends, or for equals what lies between them.
  const bool one_would = relation_holds(claim, made.low) || relation_holds(claim, made.high) ||
                         (made.low < 0 && made.high > 0 && relation_holds(claim, 0));
  made.undecided = !made.verdict.holds && one_would;
  return made;
}

std::string Comparison::answer() const {
  return verdict.holds ? "holds" : undecided ? "not enough evidence" : "does not hold";
}

nlohmann::ordered_json to_json(const Comparison& comparison) {
  auto json = to_json(comparison.verdict);
  json["undecided"] = comparison.undecided;
  json["difference"] = comparison.difference;
  json["low"] = comparison.low;
  json["high"] = comparison.high;
  json["differences"] = comparison.differences;
  return json;
}

std::string measured_text(const Comparison& comparison) {
  const auto seeds = comparison.differences.size();
  std::string text = measured_text(comparison.verdict) + "; difference " + signed_number(comparison.difference);
  if (seeds > 1) text += " (" + signed_number(comparison.low) + " to " + signed_number(comparison.high) + ")";
  return text + ", " + std::to_string(seeds) + (seeds == 1 ? " seed" : " seeds");
}

std::string comparison_text(const std::vector<Comparison>& comparisons) {
  std::vector<ClaimLine> lines;
  for (const auto& comparison : comparisons)
    lines.push_back({comparison.answer(), expected_text(comparison.verdict), measured_text(comparison)});
  return claim_text(lines);
}

}  // namespace headlab
