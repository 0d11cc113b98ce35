#pragma once

#include "src/heads/scorer.h"

namespace headlab {

/// Uniform numbers: the control of every other scorer.
class RandomScorer : public Scorer {
 public:
  explicit RandomScorer(const NoOptions&) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
