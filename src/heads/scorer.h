#pragma once

#include "src/heads/head_set.h"
#include "src/task/task.h"

namespace headlab {

/// Says how much each head matters; higher matters more.
struct Scorer {
  virtual ~Scorer() = default;
  virtual HeadScores score(Model& model, const Task& task, uint64_t seed) = 0;
};

using Scorers = Registry<Scorer>;
const Scorers& scorers();
const Catalogue& scorer_catalogue();

struct GradientScorerOptions : Described<GradientScorerOptions> {
  std::string split = "train";
  int64_t limit = 1000, max_tokens = 4096;
  std::string absolute = "example";
  std::string normalise = "layer";
  void describe(Fields& fields) override;
};

/// I_h = mean over x of |dL(x)/dxi_h|, xi_h = 1 a factor on head h's output          (1905.10650, eq. 2)
/// x is an example (its loss summed over its tokens) or a whole batch; `normalise` layer: divided by the l2 norm over the
/// heads of each attention, as the paper does. In evaluation mode, parameters untouched.
class GradientScorer : public Scorer {
 public:
  explicit GradientScorer(const GradientScorerOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  GradientScorerOptions options_;
};

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

/// Uniform numbers: the control of every other scorer.
class RandomScorer : public Scorer {
 public:
  explicit RandomScorer(const NoOptions&) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
