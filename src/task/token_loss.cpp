#include "src/task/token_loss.h"

#include <torch/torch.h>

#include "src/data/batches.h"

namespace headlab {

Tensor target_logits(Model& model, const TokenBatch& batch, Forward& run) {
  auto hidden = model.hidden(batch.inputs, run).flatten(0, 1);
  if (batch.rows_N.defined()) hidden = hidden.index_select(0, batch.rows_N);
  return model.logits_of(hidden, run);
}

TokenLoss token_loss(Model& model, const TokenBatch& batch, double smoothing, Forward& run) {
  return smoothed_cross_entropy(target_logits(model, batch, run), batch.targets_N, smoothing);
}

TokenTotals token_totals(Model& model, const Task& task, const EvaluateOptions& options, const std::map<Stack, Tensor>& scale) {
  torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  auto [source, target] = task.lengths(options.split);
  if (options.limit > 0 && static_cast<int64_t>(target.size()) > options.limit) {
    target.resize(options.limit);
    if (!source.empty()) source.resize(options.limit);
  }
  BatchOptions batching;
  batching.max_tokens = options.max_tokens;
  TokenTotals totals;
  for (const auto& examples : evaluation_batches(source.empty() ? target : source, target, batching)) {
    const auto batch = task.batch(options.split, examples, model.device());
    Forward run;
    run.scale = scale;
    const auto logits = target_logits(model, batch, run);
    totals.nll += smoothed_cross_entropy(logits, batch.targets_N, 0).nll_sum.to(torch::kFloat64).item<double>();
    totals.correct += logits.argmax(-1).eq(batch.targets_N).sum().item<int64_t>();
    totals.tokens += batch.tokens;
  }
  return totals;
}

}  // namespace headlab
