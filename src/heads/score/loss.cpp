#include "src/heads/score/loss.h"

#include "modules/tensor/torch.h"
#include "src/heads/scale.h"
#include "src/task/token_loss.h"

namespace headlab {

void LossScorerOptions::describe(Fields& fields) { describe_examples(fields); }

HeadScores LossScorer::score(Model& model, const Task& task, uint64_t) {
  EvaluateOptions evaluation;
  evaluation.split = options_.split;
  evaluation.limit = options_.limit;
  evaluation.max_tokens = options_.max_tokens;
  const auto loss = [&](const HeadSet& masked) {
    const auto totals = token_totals(model, task, evaluation, mask_scale(model, masked));
    return totals.nll / static_cast<double>(totals.tokens);
  };
  HeadScores scores;
  scores.method = "loss";
  const auto baseline = loss({});
  for (auto head : heads_of(model.heads())) scores.heads[head] = loss({head}) - baseline;
  return scores;
}

}  // namespace headlab
