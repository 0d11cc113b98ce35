#include "src/report/figures.h"
#include "src/run/stages/stages.h"

namespace headlab {

nlohmann::ordered_json AblateStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "ablate" : options_.name;
  auto model = context.model(options_.model);
  auto options = options_.inner;
  options.metric = metric_or_first(context.task(options_.task), options.metric);
  const auto& metric = options.metric;
  const auto result = ablate(*model, context.task(options_.task), options, context.seed_of(stage), [&](int64_t done, int64_t total) {
    context.console().progress("ablate", done, total, "ablating heads, " + metric);
  }, context.masked(options_.model));
  const AblateRow* worst = nullptr;
  const double sign = smaller_is_better(metric) ? 1 : -1;
  for (const auto& row : result.each)
    if (!worst || sign * row.metrics.at(metric) > sign * worst->metrics.at(metric)) worst = &row;
  std::string text = std::to_string(result.each.size()) + " heads, one at a time; " + std::to_string(result.sets.size()) + " sets";
  if (worst) {
    const auto change = worst->metrics.at(metric) - result.baseline.at(metric);
    text += "; worst: " + worst->name + "  " + figure_signed(metric, change) + " " + metric;
  }
  context.console().line("ablate", text);
  auto json = result.to_json(metric);
  json["replaced_with"] = options.replace.with;
  if (worst) json["worst"] = {{"head", worst->name}, {"delta", worst->metrics.at(metric) - result.baseline.at(metric)}};
  return json;
}

}  // namespace headlab
