#include "src/train/early_stopping.h"

#include <cmath>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/task/task.h"

namespace headlab {

void EarlyStoppingOptions::describe(Fields& fields) {
  fields.add("metric", metric, "what must improve; one of those that `validate` measures");
  fields
      .add("patience", patience,
           "stop after so many validations in a row without an improvement; the model of the best one is left")
      .at_least(0)
      .means("0: never stop, and leave the model of the last step");
  fields.add("min_delta", min_delta, "an improvement is a change for the better by more than this").at_least(0);
}

bool EarlyStopping::see(int64_t step, const std::map<std::string, double>& metrics) {
  const auto found = metrics.find(options_.metric);
  if (found == metrics.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    throw UsageError(unknown_name("metric for early_stopping.metric", options_.metric, names) +
                     "; name it in validate.metrics");
  }
  const auto value = found->second;
  const double sign = smaller_is_better(options_.metric) ? -1 : 1;
  const bool better =
      !std::isnan(value) && (best_step_ == 0 || sign * (value - best_.at(options_.metric)) > options_.min_delta);
  if (!better) {
    ++without_;
    return false;
  }
  without_ = 0;
  best_step_ = step;
  best_ = metrics;
  return true;
}

nlohmann::json EarlyStopping::state() const {
  nlohmann::json state{
      {"metric", options_.metric}, {"value", nullptr}, {"step", best_step_}, {"metrics", best_}, {"without", without_}};
  if (best_step_ > 0) state["value"] = best_.at(options_.metric);
  return state;
}

void EarlyStopping::restore(const nlohmann::json& state) {
  best_step_ = state.at("step");
  without_ = state.at("without");
  best_.clear();
  for (const auto& [name, value] : state.at("metrics").items())
    best_[name] = value.is_null() ? std::nan("") : value.get<double>();
}

}  // namespace headlab
