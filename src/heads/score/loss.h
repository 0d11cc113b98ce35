#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct LossScorerOptions : Described<LossScorerOptions>, Examples {
  LossScorerOptions() : Examples{"valid", 0} {}
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
