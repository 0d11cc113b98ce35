
#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"
#include "src/run/stages/stages.h"
#include "src/spec/dump.h"
#include "src/terminal/format.h"
#include "src/train/profile.h"

namespace headlab {

nlohmann::ordered_json TrainStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "train" : options_.name;
  const auto name = context.full(stage);
  const auto& options = options_.inner;
  auto model = context.model(options_.model);
  const auto mask = scale_of(context, options_.model, *model);
  if (!mask.empty())
    throw UsageError("train: the model of " + in_quotes(context.resolve(options_.model)) +
                     " has masked heads; prune it instead, or train the unmasked model");
  const auto& shared = dynamic_cast<const ModelOptions&>(context.spec().model.options());
  Trainer trainer(*model, context.task(options_.task), options, shared.d_model, context.seed_of(stage),
                  options.anchor.task.empty() ? nullptr : &context.task(options.anchor.task));
  const auto folder = context.folder().checkpoints(name);
  trainer.annotate = [&](nlohmann::json& state) {
    state["metrics_bytes"] = context.metrics_bytes();
    state["heads"] = to_json(model->heads());
    state["model"] = dump(context.model_options(options_.model));
  };
  if (trainer.resume(folder)) {
    context.metrics_from(load_checkpoint_state(*latest_checkpoint(folder)).at("metrics_bytes"));
    context.console().line("train", "goes on from step " + with_commas(trainer.step()));
  } else if (profile_residual(*model, shared.residual, context.task(options_.task), options.batch,
                              context.seed_of(stage))) {
    context.console().line("train", "scales of the residual sums begin at what the first batches give");
  }
  TrainReport last;
  const bool done = trainer.run(
      folder,
      [&](const TrainReport& report) {
        last = report;
        nlohmann::ordered_json row{{"stage", name},
                                   {"step", report.step},
                                   {"epoch", report.epoch},
                                   {"loss", report.loss},
                                   {"nll", report.nll},
                                   {"lr", report.learning_rate},
                                   {"grad_norm", report.grad_norm},
                                   {"tokens", report.tokens}};
        for (const auto& [key, value] : report.aux) row["aux"][key] = value;
        for (const auto& [key, value] : report.valid) row["valid"][key] = value;
        row["tokens_per_s"] = report.tokens_per_second;
        row["seconds"] = report.seconds;
        context.metric(row);
        auto text = "loss " + fixed(report.loss, 3) + "  ppl " + fixed(std::exp(report.nll), 2) + "  " +
                    short_number(report.tokens_per_second) + " tok/s";
        for (const auto& [key, value] : report.valid) text += "  valid " + key + " " + fixed(value, 3);
        context.console().progress("train", report.step, report.steps, text);
      },
      [&] { return context.stop_asked(); });
  if (!done) throw Interrupted("at step " + with_commas(trainer.step()) + ": saved");
  context.keep_model(stage, model, context.model_options(options_.model));
  nlohmann::ordered_json result{
      {"steps", trainer.step()}, {"tokens", trainer.tokens()}, {"seconds", trainer.seconds()}};
  if (trainer.seconds() > 0) result["tokens_per_s"] = static_cast<double>(trainer.tokens()) / trainer.seconds();
  result["loss"] = last.loss;
  const auto& stopping = trainer.early_stopping();
  for (const auto& [key, value] : stopping.best_step() > 0 ? stopping.best() : last.valid) result["valid"][key] = value;
  if (stopping.best_step() > 0) {
    result["stopped_at"] = trainer.step();
    result["best_step"] = stopping.best_step();
    context.console().line("train", (stopping.over() ? "stopped early; " : "") +
                                        std::string("the model is that of step ") + with_commas(stopping.best_step()) +
                                        ", valid " + stopping.metric() + " " +
                                        fixed(stopping.best().at(stopping.metric()), 3));
  }
  context.console().line("train", with_commas(trainer.step()) + " steps, loss " + fixed(last.loss, 3) + ", " +
                                      duration(trainer.seconds()));
  return result;
}

}  // namespace headlab
