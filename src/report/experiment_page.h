#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headlab {

/// What one run of an experiment left in its folder; a file that is not there is null, or has no rows.
struct RunFiles {
  nlohmann::ordered_json results, spec, environment;
  std::vector<nlohmann::json> metrics;
};

/// The page of a spec with several runs (arms, seeds, a sweep), as report_html is that of one: question and verdicts of
/// the claims about arms with their intervals; results of each arm as means and intervals over the seeds; pruning
/// curves with bands, of arms, criteria and stacks; a metric against what a sweep changes; training; heads, as means
/// over the seeds; each run with a link to its own page; how to repeat it. A part without results is left out. All text
/// is escaped.
///
/// `experiment` is experiment.json; all keys may be missing:
///
///   name, question, paper, command
///   runs     [{"label", "arm", "group", "seed", "id"}], as `runs`; those of equal group differ in their seed alone
///   compare  what claims about several runs came to: claim_item in src/report/claims.h
///   summary  [{"group", "stage", "measure", "at", "mean", "low", "high", "values"}]: src/run/summary.h
std::string experiment_html(const nlohmann::ordered_json& experiment, const std::vector<RunFiles>& runs);

}  // namespace headlab
