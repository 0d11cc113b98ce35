#include "src/task/frames.h"

#include "modules/embedding/frames.h"
#include "modules/tensor/torch.h"
#include "src/task/token_loss.h"

namespace headlab {

MetricNames FrameTaskOptions::metrics() const { return {{"frame_error", "accuracy", "loss"}, {"frame_error", "loss"}}; }

void FrameTaskOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("frames", model, {{"frame_encoder", "tags"}}, problems);
  width_rule(model, problems);
  if (!frame_source(data).has_frame_classes())
    problems.add("task.data", "expected frames of which the class of each is known, got " + data.type() +
                                  ", which knows what is said in a whole text; use the task transcription");
}

ModelContext FrameTask::context() const {
  ModelContext context;
  context.source_vocabulary = context.target_vocabulary = 2;  // the placeholders
  context.classes = static_cast<int64_t>(data().symbols.size());
  return context;
}

TokenBatch FrameTask::collect(const std::string& split, const std::vector<int64_t>& examples,
                              torch::Device device) const {
  const auto& part = part_of(data().parts, split);
  const auto read = rows(split, examples, device);
  const auto T = read.places_BT.size(1);
  std::vector<int64_t> targets, asked;
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const auto& classes = part[static_cast<std::size_t>(examples[b])].at_frame;
    for (std::size_t t = 0; t < classes.size(); ++t) {
      if (classes[t] < 0) continue;  // nothing is asked there
      asked.push_back(static_cast<int64_t>(b) * T + static_cast<int64_t>(t));
      targets.push_back(classes[t]);
    }
  }
  TokenBatch batch;
  batch.inputs.target_BT = read.places_BT;
  batch.inputs.target_mask_BT = read.mask_BT;
  batch.inputs.side[frames_name] = read.frames_BTF;
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(asked, torch::kLong).to(device);
  return batch;
}

Evaluation FrameTask::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(data().parts, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, std::vector<int64_t>> said_of;  // by example
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto best = logits.argmax(-1).cpu();
    const auto* at = best.data_ptr<int64_t>();
    for (const auto number : batch.examples)
      for (const auto right : part[static_cast<std::size_t>(number)].at_frame)
        if (right >= 0) said_of[number].push_back(*at++);
  });
  Evaluation result;
  for (const auto& [number, said] : said_of) {
    result.hypotheses.push_back(text_of(said));
    if (static_cast<int64_t>(result.samples.size()) >= options.samples) continue;
    std::vector<int64_t> right;
    for (const auto symbol : part[static_cast<std::size_t>(number)].at_frame)
      if (symbol >= 0) right.push_back(symbol);
    result.samples.push_back({"", text_of(right), result.hypotheses.back()});
  }
  const std::map<std::string, double> all{
      {"loss", totals.loss()}, {"accuracy", totals.accuracy()}, {"frame_error", 1 - totals.accuracy()}};
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

}  // namespace headlab
