#include "modules/base/nearest.h"
#include "src/run/stages/stages.h"

namespace headlab {

void RepeatStageOptions::describe(Fields& fields) {
  describe_common(fields, "repeat");
  fields.add("times", times, "how often, each time with another seed").at_least(1);
  fields.add("chained", chained, "start each repetition from the model that the one before left, not all from the same");
  fields.add("stages", stages, "what is repeated").required();
}

void RepeatStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  check_stages(stages, place + ".stages", known, problems);
}

nlohmann::ordered_json RepeatStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "repeat" : options_.name;
  if (!context.prefix.empty()) throw UsageError("repeat: a repeat can't stand in a repeat");
  const auto start = options_.model.empty() ? context.latest() : options_.model;
  nlohmann::ordered_json result{{"runs", nlohmann::ordered_json::array()}};
  for (int64_t i = 1; i <= options_.times; ++i) {
    context.prefix = stage + "-" + std::to_string(i) + "/";
    context.repetition = i;
    if (i == 1 || !options_.chained) context.use_model(start);
    context.console().plain("  " + stage + " " + std::to_string(i) + " of " + std::to_string(options_.times));
    run_stages(options_.stages, context);
    nlohmann::ordered_json inner;
    for (const auto& item : options_.stages.items) inner[stage_name(item)] = context.results()["stages"][context.prefix + stage_name(item)];
    result["runs"].push_back(inner);
  }
  const auto last = context.latest();
  context.prefix.clear();
  context.repetition = 0;
  context.use_model(start);
  if (options_.chained) {
    if (!context.masked(last).empty())
      throw UsageError("repeat: the last repetition of " + in_quotes(stage) + " ends with masked heads, which would be masked no longer after it; prune them");
    context.keep_model(stage, context.model(last));
  }
  for (int64_t i = 1; i <= options_.times; ++i)  // they are within this stage's result now
    for (const auto& item : options_.stages.items)
      context.results()["stages"].erase(stage + "-" + std::to_string(i) + "/" + stage_name(item));
  return result;
}

}  // namespace headlab
