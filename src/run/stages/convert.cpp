#include "src/convert/convert.h"

#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"
#include "src/run/stages/stages.h"
#include "src/terminal/format.h"

namespace headlab {

void ConvertStageOptions::describe(Fields& fields) {
  describe_common(fields, "convert");
  convert.describe(fields);
}

nlohmann::ordered_json ConvertStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "convert" : options_.name;
  if (!context.masked(options_.model).empty())
    throw UsageError("convert: the model of " + in_quotes(context.resolve(options_.model)) +
                     " has masked heads; prune them, so that they are not converted");
  const auto model = context.model(options_.model);
  const auto made =
      convert(*model, context.model_options(options_.model), options_.convert, context.task(options_.task),
              context.seed_of(stage),
              [&](const Choice& options, const HeadTable& kept) { return context.make_model(options, kept); });
  context.keep_model(stage, made.model, made.options);
  nlohmann::ordered_json result{{"to", options_.convert.to.type()}};
  result.update(made.report);
  std::string text;
  for (const auto& [name, value] : result.at("largest").items())
    text += ", " + name + " at most " + short_number(value.get<double>());
  const auto change = [&](const char* what) {
    const auto before = result.at(what + std::string("_before")).get<double>(),
               after = result.at(what + std::string("_after")).get<double>();
    return what + (" " + short_number(before)) + " -> " + short_number(after);
  };
  context.console().line("convert", options_.convert.to.type() + ", " + std::to_string(result.at("attentions").size()) +
                                        " attentions" + text + ";  " + change("parameters") + ", " + change("cache") +
                                        " numbers a token");
  return result;
}

}  // namespace headlab
