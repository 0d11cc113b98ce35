#include "src/train/average.h"

#include "modules/base/nearest.h"
#include "src/run/stages/stages.h"

namespace headlab {

void AverageStageOptions::describe(Fields& fields) {
  fields.add("name", name, "what results and other stages call it").means("absent: average");
  fields.add("model", model, "the train stage whose checkpoints are averaged").required();
  fields.add("last", last, "how many of its last checkpoints").at_least(1);
}

void AverageStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  const auto found = known.find(model);
  if (found == known.end()) {  // an earlier stage that does not exist has been told
    if (model == "initial") problems.add(place + ".model", "expected the name of a train stage, got \"initial\"");
    return;
  }
  const auto* training = dynamic_cast<const TrainStageOptions*>(&found->second->options());
  if (!training)
    return problems.add(place + ".model", "expected the name of a train stage, got " + in_quotes(model) +
                                              ", which is of type " + found->second->type());
  const auto& train = training->inner;
  if (train.keep_checkpoints < last)
    return problems.add(place + ".last", "expected at most the keep_checkpoints of " + in_quotes(model) + " (" +
                                             std::to_string(train.keep_checkpoints) + "), got " + std::to_string(last) +
                                             "; raise keep_checkpoints");
  // Of a training that is not stopped early: one each checkpoint_every, and one at the end.
  const auto made =
      train.checkpoint_every > 0 ? (train.steps + train.checkpoint_every - 1) / train.checkpoint_every : int64_t{1};
  if (train.early_stopping.patience == 0 && made < last)
    problems.add(place + ".last", "expected at most the checkpoints that " + in_quotes(model) + " makes (" +
                                      std::to_string(made) + "), got " + std::to_string(last) +
                                      "; lower its checkpoint_every");
}

nlohmann::ordered_json AverageStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "average" : options_.name;
  const auto folder = context.folder().checkpoints(context.resolve(options_.model));
  auto averaged = average_checkpoints(folder, options_.last);
  auto model = context.model(options_.model);
  load_tensors(*model, averaged.model, folder.string());
  context.keep_model(stage, model, context.model_options(options_.model));
  std::string steps;
  for (const auto step : averaged.steps) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  context.console().line("average", "the mean of " + options_.model + " at steps " + steps);
  return {{"model", options_.model}, {"steps", averaged.steps}};
}

}  // namespace headlab
