#pragma once

#include "src/metrics/interval.h"
#include "src/run/run.h"

namespace headlab {

/// One measure of the runs that differ in their seed alone.
struct SummaryRow {
  std::string group;              // what they have in common: an arm, or what a sweep sets beside the seed
  std::string stage, measure;     // "pruned", "bleu"
  std::optional<double> at;       // of a curve: the share of heads that is masked
  std::vector<double> values;     // one a seed
  Interval interval;              // their mean and its 95 % interval, Student's t; of one seed its value
};

/// All that the runs' stages measure: metrics of evaluate stages, points of curves ("value", and "random" for the mean of the
/// random sets), and other numbers that stages leave ("steps", "heads_after", "gini"). Groups, stages and measures stand in the
/// order in which they first come. Within a repeat, the mean over its repetitions counts as the run's value.
std::vector<SummaryRow> summarised(const std::vector<RunVariant>& variants, const std::vector<RunOutcome>& runs);

nlohmann::ordered_json to_json(const std::vector<SummaryRow>& rows);

/// group,stage,measure,at,mean,low,high,seeds
std::string to_csv(const std::vector<SummaryRow>& rows);

/// For a person: the metrics of evaluate stages, a row a group; and each curve, a row a group and point.
std::string summary_text(const std::vector<SummaryRow>& rows, const std::vector<RunOutcome>& runs, int64_t columns);

}  // namespace headlab
