#include <algorithm>
#include <set>

#include "modules/base/nearest.h"
#include "src/run/stages/stages.h"
#include "src/spec/dump.h"
#include "src/spec/override.h"
#include "src/spec/path.h"
#include "src/spec/reader.h"

namespace headlab {

namespace {

struct StageList : Described<StageList> {
  Choices stages{stage_catalogue, true, {}};
  void describe(Fields& fields) override { fields.add("stages", stages, "what is repeated").required(); }
};

}  // namespace

void RepeatStageOptions::describe(Fields& fields) {
  describe_common(fields, "repeat");
  fields.add("times", times, "how often, each time with another seed")
      .at_least(1)
      .means("absent: 3, or once for each of \"with\"");
  fields.add("chained", chained,
             "start each repetition from the model that the one before left, not all from the same");
  fields.add("with", with,
             "what each repetition sets, a list such as [{\"stages[0].train.steps\": 100}]; they differ in it alone");
  fields.add("stages", stages, "what is repeated").required();
}

void RepeatStageOptions::rules(Problems& problems) const {
  if (with.is_null()) return;
  const auto a_setting = [](const auto& one) { return one.is_object() && !one.empty(); };
  if (!with.is_array() || with.empty() || !std::all_of(with.begin(), with.end(), a_setting))
    problems.add("with", "expected a list of objects {key: value}, one a repetition");
  else if (times)
    problems.add("times", "goes without \"with\", which says itself how often");
}

Choices RepeatStageOptions::stages_of(int64_t i, const std::string& place, Problems& problems) const {
  if (!with.is_array() || with.empty()) return stages;
  const auto here = item_path(place + ".with", static_cast<std::size_t>(i));
  StageList list;
  list.stages = stages;
  auto document = Document::parse_text(dump_text(list), here);
  for (const auto& [key, value] : with.at(static_cast<std::size_t>(i)).items()) {
    const auto mistake =
        key.rfind("stages[", 0) == 0
            ? set_value(document, key, document.root().at, parse_value(value.dump(), document.root().at))
            : Mistake{{}, key, "expected a key of the repeated stages, such as stages[0].train.steps"};
    if (mistake) problems.add(here, key + ": " + mistake->message);
  }
  StageList changed;
  for (const auto& mistake : read(document, changed)) problems.add(here, mistake.path + ": " + mistake.message);
  return changed.stages;
}

void RepeatStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  Problems own;
  rules(own);
  if (!own.found.empty()) return;  // told already
  Problems each;
  for (int64_t i = 0; i < (with.empty() ? 1 : repetitions()); ++i)
    check_stages(stages_of(i, place, each), place + ".stages", known, each);
  std::set<std::pair<std::string, std::string>> told;  // what is wrong in every repetition is told once
  for (const auto& [field, message] : each.found)
    if (told.emplace(field, message).second) problems.add(field, message);
}

nlohmann::ordered_json RepeatStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "repeat" : options_.name;
  if (!context.prefix.empty()) throw UsageError("repeat: a repeat can't stand in a repeat");
  const auto start = options_.model.empty() ? context.latest() : options_.model;
  nlohmann::ordered_json result{{"runs", nlohmann::ordered_json::array()}};
  const auto times = options_.repetitions();
  for (int64_t i = 1; i <= times; ++i) {
    Problems problems;
    const auto stages = options_.stages_of(i - 1, stage, problems);
    context.prefix = stage + "-" + std::to_string(i) + "/";
    context.repetition = i;
    if (i == 1 || !options_.chained) context.use_model(start);
    context.console().plain("  " + stage + " " + std::to_string(i) + " of " + std::to_string(times));
    run_stages(stages, context);
    nlohmann::ordered_json inner;
    for (const auto& item : options_.stages.items)
      inner[stage_name(item)] = context.results()["stages"][context.prefix + stage_name(item)];
    result["runs"].push_back(inner);
  }
  const auto last = context.latest();
  context.prefix.clear();
  context.repetition = 0;
  context.use_model(start);
  if (options_.chained) {
    if (!context.masked(last).empty())
      throw UsageError("repeat: the last repetition of " + in_quotes(stage) +
                       " ends with masked heads, which would be masked no longer after it; prune them");
    context.keep_model(stage, context.model(last), context.model_options(last));
  }
  for (int64_t i = 1; i <= times; ++i)  // they are within this stage's result now
    for (const auto& item : options_.stages.items)
      context.results()["stages"].erase(stage + "-" + std::to_string(i) + "/" + stage_name(item));
  if (!options_.with.empty()) result["with"] = options_.with;
  return result;
}

}  // namespace headlab
