#include <algorithm>

#include "modules/base/nearest.h"
#include "src/report/figures.h"
#include "src/run/stages/stages.h"

namespace headlab {

void AblateStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  const auto& like = inner.random.like;
  if (like.empty()) return;
  const auto found = known.find(like);
  if (found == known.end())
    problems.add(place + ".random.like", "no earlier stage is called " + in_quotes(like));
  else if (!dynamic_cast<const PruneStageOptions*>(&found->second->options()))
    problems.add(place + ".random.like", "expected the name of a prune stage, got " + in_quotes(like) +
                                             ", which is of type " + found->second->type());
}

nlohmann::ordered_json AblateStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "ablate" : options_.name;
  auto model = context.model(options_.model);
  auto options = options_.inner;
  options.metric = metric_or_first(context.task(options_.task), options.metric);
  const auto& metric = options.metric;
  if (const auto& like = options.random.like; !like.empty()) {
    const auto removed =
        context.results()["stages"].at(context.resolve(like)).at("removed").get<std::vector<std::string>>();
    auto sets = sets_like(without(model->heads(), context.masked(options_.model)), parse_heads(removed),
                          options.random.sets, context.seed_of(stage));
    options.sets.insert(options.sets.end(), sets.begin(), sets.end());
    options.random.sets = 0;
  }
  const auto result = ablate(
      *model, context.task(options_.task), options, context.seed_of(stage),
      [&](int64_t done, int64_t total) {
        context.console().progress("ablate", done, total, "ablating heads, " + metric);
      },
      context.masked(options_.model));
  const AblateRow* worst = nullptr;
  const double sign = smaller_is_better(metric) ? 1 : -1;
  for (const auto& row : result.each)
    if (!worst || sign * row.metrics.at(metric) > sign * worst->metrics.at(metric)) worst = &row;
  std::string text =
      std::to_string(result.each.size()) + " heads, one at a time; " + std::to_string(result.sets.size()) + " sets";
  if (worst) {
    const auto change = worst->metrics.at(metric) - result.baseline.at(metric);
    text += "; worst: " + worst->name + "  " + figure_signed(metric, change) + " " + metric;
  }
  context.console().line("ablate", text);
  auto json = result.to_json(metric);
  if (options.spare)
    json["spare"] = std::count_if(result.each.begin(), result.each.end(), [&](const AblateRow& row) {
      return sign * row.metrics.at(metric) <= sign * *options.spare;
    });
  json["replaced_with"] = options.replace.with;
  if (worst) json["worst"] = {{"head", worst->name}, {"delta", worst->metrics.at(metric) - result.baseline.at(metric)}};
  return json;
}

}  // namespace headlab
