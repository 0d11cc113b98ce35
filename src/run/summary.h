#pragma once

#include "src/metrics/interval.h"
#include "src/run/run.h"

namespace headlab {

/// One measure of the runs that differ in their seed alone.
struct SummaryRow {
  std::string group;           // what they have in common: an arm, or what a sweep sets beside the seed
  std::string stage, measure;  // "pruned", "bleu"
  std::optional<double> at;    // of a curve: the share of heads that is masked
  std::string metric;          // of a curve: what "value" and "random" are of
  std::string method;  // of a curve: what chose the heads: "gradient", "norm, highest first", "gradient, dec.cross"
  std::vector<double> values;  // one a seed, in the order of the runs; not a number where a run measured none
  Interval interval;           // their mean and its 95 % interval, Student's t; of one seed its value
};

/// All that the runs' stages measure: metrics of evaluate stages, points of curves ("value", and "random" for the mean
/// of the random sets; those of equal fraction are one row), and other numbers that stages leave ("steps",
/// "heads_after", "gini"). Groups, stages and measures stand in the order in which they first come. Within a repeat,
/// the mean over its repetitions counts as the run's value.
std::vector<SummaryRow> summarised(const std::vector<RunVariant>& variants, const std::vector<RunOutcome>& runs);

nlohmann::ordered_json to_json(const std::vector<SummaryRow>& rows);

/// group,stage,measure,at,mean,low,high,seeds,metric,method
std::string to_csv(const std::vector<SummaryRow>& rows);

/// For a person: the metrics of evaluate stages, a row a group; and of each metric one table of all curves, a row a
/// group, method and fraction. "82.7 ± 0.6" is the mean and half its 95 % interval.
std::string summary_text(const std::vector<SummaryRow>& rows, const std::vector<RunOutcome>& runs, int64_t columns);

}  // namespace headlab
