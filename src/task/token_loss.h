#pragma once

#include <functional>

#include "modules/loss/cross_entropy.h"
#include "src/data/batches.h"
#include "src/task/task.h"

namespace headlab {

/// The loss of a batch's targets under the model; logits are made for the questions that count alone.
TokenLoss token_loss(Model& model, const TokenBatch& batch, double smoothing, Forward& run);

/// logits_NV of a batch's targets.
Tensor target_logits(Model& model, const TokenBatch& batch, Forward& run);

/// Calls `see` with each batch of a split (or of its first options.limit examples) and the logits of its questions, the
/// longest examples first; without gradient, in evaluation mode.
void for_each_batch(Model& model, const Task& task, const EvaluateOptions& options, const Intervention& with,
                    const std::function<void(const TokenBatch& batch, const Tensor& logits_NC)>& see);

/// Sums over a whole split, without gradient, in evaluation mode.
struct TokenTotals {
  double nll = 0;
  int64_t correct = 0, tokens = 0;
  void add(const TokenBatch& batch, const Tensor& logits_NC);
  double loss() const { return nll / static_cast<double>(tokens); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(tokens); }
};
TokenTotals token_totals(Model& model, const Task& task, const EvaluateOptions& options, const Intervention& with);

/// The first `limit` examples of a split (0: all), in batches for evaluation.
Batches first_batches(const Task& task, const std::string& split, int64_t limit, int64_t max_tokens);

/// Puts a module into evaluation (or training) mode for a scope.
class Mode {
 public:
  Mode(torch::nn::Module& module, bool training) : module_(module), before_(module.is_training()) {
    module_.train(training);
  }
  ~Mode() { module_.train(before_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  torch::nn::Module& module_;
  bool before_;
};

}  // namespace headlab
