#include "src/task/token_loss.h"

#include <torch/torch.h>

#include "src/data/batches.h"

namespace headlab {

Tensor target_logits(Model& model, const TokenBatch& batch, Forward& run) {
  return model.row_logits(batch.inputs, batch.rows_N, run);
}

TokenLoss token_loss(Model& model, const TokenBatch& batch, double smoothing, Forward& run) {
  return smoothed_cross_entropy(target_logits(model, batch, run), batch.targets_N, batch.smooth ? smoothing : 0);
}

void for_each_batch(Model& model, const Task& task, const EvaluateOptions& options, const std::map<Stack, Tensor>& scale,
                    const std::function<void(const TokenBatch&, const Tensor&)>& see) {
  torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  auto [source, target] = task.lengths(options.split);
  if (options.limit > 0 && static_cast<int64_t>(target.size()) > options.limit) {
    target.resize(options.limit);
    if (!source.empty()) source.resize(options.limit);
  }
  BatchOptions batching;
  batching.max_tokens = options.max_tokens;
  for (const auto& examples : evaluation_batches(source.empty() ? target : source, target, batching)) {
    const auto batch = task.batch(options.split, examples, model.device());
    Forward run;
    run.scale = scale;
    see(batch, target_logits(model, batch, run));
  }
}

void TokenTotals::add(const TokenBatch& batch, const Tensor& logits_NC) {
  nll += smoothed_cross_entropy(logits_NC, batch.targets_N, 0).nll_sum.to(torch::kFloat64).item<double>();
  correct += logits_NC.argmax(-1).eq(batch.targets_N).sum().item<int64_t>();
  tokens += batch.tokens;
}

TokenTotals token_totals(Model& model, const Task& task, const EvaluateOptions& options, const std::map<Stack, Tensor>& scale) {
  TokenTotals totals;
  for_each_batch(model, task, options, scale,
                 [&](const TokenBatch& batch, const Tensor& logits) { totals.add(batch, logits); });
  return totals;
}

}  // namespace headlab
