#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct ConfidenceOptions : Described<ConfidenceOptions>, Examples {
  ConfidenceOptions() : Examples{"valid", 1000} {}
  void describe(Fields& fields) override;
};

/// The mean over tokens of the largest weight, max_j A_ij: how sure a head is of what it looks at. (1905.09418, section
/// 3) Ends of text and padding are left out, as queries and as keys; the weights that are left are not made to sum to 1
/// again. In evaluation mode. Throws UsageError where tokens are routed to heads: a head has no weights of the others
/// then.
class ConfidenceScorer : public Scorer {
 public:
  explicit ConfidenceScorer(const ConfidenceOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  ConfidenceOptions options_;
};

}  // namespace headlab
