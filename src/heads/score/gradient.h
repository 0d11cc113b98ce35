#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct GradientScorerOptions : Described<GradientScorerOptions>, Examples {
  GradientScorerOptions() : Examples{"train", 1000} {}
  std::string absolute = "example";
  std::string normalise = "layer";
  void describe(Fields& fields) override;
};

/// I_h = mean over x of |dL(x)/dxi_h|, xi_h = 1 a factor on head h's output          (1905.10650, eq. 2)
/// x is an example (its loss summed over its tokens) or a whole batch; `normalise` layer: divided by the l2 norm over
/// the heads of each attention, as the paper does. In evaluation mode, parameters untouched.
class GradientScorer : public Scorer {
 public:
  explicit GradientScorer(const GradientScorerOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  GradientScorerOptions options_;
};

}  // namespace headlab
