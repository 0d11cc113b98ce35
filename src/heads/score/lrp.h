#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct RelevanceScorerOptions : Described<RelevanceScorerOptions>, Examples {
  RelevanceScorerOptions() : Examples{"valid", 100} {}
  std::string logit = "predicted";
  int64_t questions = 0;
  double alpha = 0.5;
  std::string normalise = "layer";
  void describe(Fields& fields) override;
};

/// How much of the model's answer goes through the head, by layer-wise relevance propagation          (1905.09418,
/// section 4)
///   r_h = the relevance of a question's logit that reaches head h's outputs z_h, over all tokens and numbers of z_h
///   score_h = mean over questions of r_h / (sum of r over the heads of the same attention)
/// A question is a target token, or what else the task asks; its logit is that of the class the model predicts, or of
/// the right one. The rules are those of modules/tensor/relevance.h: no r_h is below 0. `normalise` none: the mean of
/// r_h / (the logit's relevance) itself. Where nothing goes through an attention its heads get 0. Weights are held
/// constant, so that a head which others read through their queries and keys alone, as in induction, gets nothing for
/// that. In evaluation mode, products in the parameters' own type, parameters and their gradients untouched. Throws
/// UsageError where tokens are routed to heads, and where an operation of the model has no rule, with its place and the
/// entries there. Costs a backward pass for each question of the example of a batch that has most, about four times a
/// usual one.
class RelevanceScorer : public Scorer {
 public:
  explicit RelevanceScorer(const RelevanceScorerOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  RelevanceScorerOptions options_;
};

}  // namespace headlab
