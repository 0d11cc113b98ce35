#include "src/run/stages/stages.h"
#include "src/terminal/format.h"

namespace headlab {

void MeasureStageOptions::describe(Fields& fields) {
  describe_common(fields, "measure");
  fields.add("what", what, "what is measured").required();
}

nlohmann::ordered_json MeasureStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "measure" : options_.name;
  auto model = context.model(options_.model);
  auto result = measures().make(options_.what)->measure(*model, context.task(options_.task), context.seed_of(stage));
  std::string text;
  for (const auto& [key, value] : result.items())
    if (value.is_number()) text += (text.empty() ? "" : ", ") + key + " " + short_number(value.get<double>());
  if (text.empty() && result.contains("texts"))
    text = std::to_string(result["texts"].size()) + " texts, " + std::to_string(result["heads"].size()) + " heads";
  context.console().line("measure", stage + ": " + text);
  return result;
}

}  // namespace headlab
