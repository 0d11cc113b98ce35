#pragma once

#include "src/heads/scorer.h"

namespace headlab {

/// The learned scale of each head, 1 + change_h of its gate `scalar`.          (2607.13425)
/// Needs no data. Throws UsageError where an attention has no such gate.
class ScalarScorer : public Scorer {
 public:
  explicit ScalarScorer(const NoOptions&) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
