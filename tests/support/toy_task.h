#pragma once

#include <numeric>

#include "src/task/token_loss.h"
#include "src/task/translation.h"
#include "tests/support/models.h"

namespace headlab {

/// Pairs of random ids, in memory: the target is the source, each id one higher. The same pairs in every split.
class ToyTask : public Task {
 public:
  explicit ToyTask(std::vector<int64_t> lengths, int64_t vocabulary = 20)
      : lengths_(std::move(lengths)), vocabulary_(vocabulary) {}
  ModelContext context() const override {
    ModelContext context;
    context.source_vocabulary = context.target_vocabulary = vocabulary_;
    return context;
  }
  int64_t longest() const override { return *std::max_element(lengths_.begin(), lengths_.end()); }
  std::string summary() const override { return "toy"; }
  nlohmann::ordered_json report() const override { return {}; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string&) const override {
    return {lengths_, lengths_};
  }
  TokenBatch collect(const std::string&, const std::vector<int64_t>& examples, torch::Device device) const override {
    std::vector<std::vector<int64_t>> sources;
    std::vector<int64_t> targets;
    for (auto example : examples) {
      const auto ids = random_ids({lengths_[example]}, vocabulary_ - 1, "toy" + std::to_string(example));
      sources.emplace_back(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
      for (auto id : sources.back()) targets.push_back(id + 1);
    }
    TokenBatch batch;
    batch.examples = examples;
    std::tie(batch.inputs.source_BS, batch.inputs.source_mask_BS) = pad_right(sources, 0, device);
    batch.inputs.target_BT = batch.inputs.source_BS;
    batch.inputs.target_mask_BT = batch.inputs.source_mask_BS;
    batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
    if (batch.inputs.target_mask_BT.defined())
      batch.rows_N = batch.inputs.target_mask_BT.flatten().nonzero().squeeze(-1);
    batch.tokens = batch.targets_N.size(0);
    return batch;
  }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override {
    ++evaluations;
    const auto totals = token_totals(model, *this, options, with);
    Evaluation result;
    result.metrics["loss"] = totals.nll / static_cast<double>(totals.tokens);
    result.metrics["accuracy"] = static_cast<double>(totals.correct) / static_cast<double>(totals.tokens);
    return result;
  }
  MetricNames metrics() const override { return {{"loss", "accuracy"}, {"loss", "accuracy"}}; }
  std::map<std::string, std::string> files() const override { return {}; }
  mutable int evaluations = 0;

 private:
  std::vector<int64_t> lengths_;
  int64_t vocabulary_;
};

/// A small encoder-decoder for a toy task, initialised.
inline std::shared_ptr<EncoderDecoder> toy_model(const ToyTask& task, double dropout = 0) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.dropout = dropout;
  options.encoder.layers = options.decoder.layers = 2;
  options.encoder.attention.heads = options.decoder.attention.heads = options.decoder.cross_attention.heads = 4;
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  initialise(*model, 5);
  return model;
}

}  // namespace headlab
