#pragma once

#include <string>
#include <vector>

namespace headlab {

/// What a person knows of a metric.
struct MetricName {
  std::string name;   // as specs and results write it
  std::string title;  // as people write it: "BLEU"
  int digits = 3;     // after the point
  bool less_is_better = false;
};

/// Every metric that a task measures, and the columns of training; nullptr for another name.
const MetricName* find_metric(const std::string& name);

/// Whether a smaller value is the better one: by the table; of other names, those that end in "loss" or "error".
bool smaller_is_better(const std::string& metric);

/// The metrics of a task: all that it can measure, and those it measures unless told otherwise. The first default is
/// what ablations and curves are about.
struct MetricNames {
  std::vector<std::string> all, defaults;
  bool has(const std::string& metric) const;
};

}  // namespace headlab
