#include "src/task/token_loss.h"

#include "modules/tensor/torch.h"

namespace headlab {

Tensor target_logits(Model& model, const TokenBatch& batch, Forward& run) {
  return model.row_logits(batch.inputs, batch.rows_N, run);
}

TokenLoss token_loss(Model& model, const TokenBatch& batch, double smoothing, Forward& run) {
  return smoothed_cross_entropy(target_logits(model, batch, run), batch.targets_N, batch.smooth ? smoothing : 0);
}

Batches first_batches(const Task& task, const std::string& split, int64_t limit, int64_t max_tokens) {
  auto [source, target] = task.lengths(split);
  if (limit > 0 && static_cast<int64_t>(target.size()) > limit) {
    target.resize(limit);
    if (!source.empty()) source.resize(limit);
  }
  BatchOptions batching;
  batching.max_tokens = max_tokens;
  return evaluation_batches(source.empty() ? target : source, target, batching);
}

void for_each_batch(Model& model, const Task& task, const EvaluateOptions& options, const Intervention& with,
                    const std::function<void(const TokenBatch&, const Tensor&)>& see) {
  torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  for (const auto& examples : first_batches(task, options.split, options.limit, options.max_tokens)) {
    const auto batch = task.batch(options.split, examples, model.device());
    Forward run;
    with.enter(run);
    see(batch, target_logits(model, batch, run));
  }
}

void TokenTotals::add(const TokenBatch& batch, const Tensor& logits_NC) {
  nll += smoothed_cross_entropy(logits_NC, batch.targets_N, 0).nll_sum.to(torch::kFloat64).item<double>();
  correct += logits_NC.argmax(-1).eq(batch.targets_N).sum().item<int64_t>();
  tokens += batch.tokens;
}

TokenTotals token_totals(Model& model, const Task& task, const EvaluateOptions& options, const Intervention& with) {
  TokenTotals totals;
  for_each_batch(model, task, options, with,
                 [&](const TokenBatch& batch, const Tensor& logits) { totals.add(batch, logits); });
  return totals;
}

}  // namespace headlab
