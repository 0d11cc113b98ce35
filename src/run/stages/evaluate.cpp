#include <algorithm>
#include <chrono>

#include "src/heads/scale.h"
#include "src/report/figures.h"
#include "src/run/stages/stages.h"
#include "src/terminal/format.h"

namespace headlab {

std::map<Stack, Tensor> scale_of(RunContext& context, const std::string& stage, const Model& model) {
  const auto masked = context.masked(stage);
  return masked.empty() ? std::map<Stack, Tensor>{} : mask_scale(model, masked);
}

nlohmann::ordered_json EvaluateStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "evaluate" : options_.name;
  const auto before = std::chrono::steady_clock::now();
  auto model = context.model(options_.model);
  const auto evaluation =
      context.task(options_.task).evaluate(*model, options_.inner, scale_of(context, options_.model, *model));
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  nlohmann::ordered_json result{{"split", options_.inner.split}};
  std::string text;
  std::string signature;
  for (const auto& metric : wanted_metrics(context.task(options_.task), options_.inner)) {
    const auto value = evaluation.metrics.at(metric);
    result["metrics"][metric] = value;
    text += metric + " " + figure(metric, value) + "  ";
    if (signature.empty() && evaluation.signatures.count(metric)) signature = evaluation.signatures.at(metric);
  }
  for (const auto& [metric, how] : evaluation.signatures) result["signature"][metric] = how;
  result["samples"] = nlohmann::ordered_json::array();
  for (const auto& sample : evaluation.samples)
    result["samples"].push_back(
        {{"source", sample.source}, {"reference", sample.reference}, {"hypothesis", sample.hypothesis}});
  result["parameters"] = model->parameter_count();
  result["heads"] = heads_of(model->heads()).size();
  result["seconds"] = seconds;
  if (!evaluation.hypotheses.empty()) {
    const auto file = context.folder().path / "outputs" / (context.full(stage) + ".txt");
    make_folders(file.parent_path());
    std::string lines;
    for (auto line : evaluation.hypotheses) {
      std::replace(line.begin(), line.end(), '\n', ' ');  // an answer may reach over a line's end
      lines += line + "\n";
    }
    write_file_atomically(file, lines);
  }
  context.console().line("evaluate", stage + "  " + text + signature);
  return result;
}

}  // namespace headlab
