#pragma once

#include "src/heads/scorer.h"

namespace headlab {

struct LossScorerOptions : Described<LossScorerOptions> {
  std::string split = "valid";
  int64_t limit = 0, max_tokens = 4096;
  void describe(Fields& fields) override;
};

/// How much the mean loss grows when head h alone is masked.
class LossScorer : public Scorer {
 public:
  explicit LossScorer(const LossScorerOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  LossScorerOptions options_;
};

}  // namespace headlab
