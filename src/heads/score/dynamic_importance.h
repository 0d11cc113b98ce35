#pragma once

#include <map>

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

/// What the gates `dynamic_importance` of a model say, as means over the real tokens of some examples.
struct MeanImportances {
  std::vector<double> importance_H;  // a_h
  std::vector<double> kl_H;          // a_h ln(H a_h), whose sum is KL(a || uniform), in nats
  double tokens = 0;
};

/// In evaluation mode, by attention. Throws UsageError where an attention with heads has no such gate, unless
/// `some_may_lack`; `who` asks.
std::map<Site, MeanImportances> mean_importances(Model& model, const Task& task, const Examples& examples,
                                                 const std::string& who, bool some_may_lack = false);

struct DynamicImportanceScorerOptions : Described<DynamicImportanceScorerOptions>, Examples {
  DynamicImportanceScorerOptions() : Examples{"valid", 1000} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// The mean over real tokens of the importance a_h that the gate `dynamic_importance` gives to the head. (2108.01377)
/// In evaluation mode. Throws UsageError where an attention has no such gate.
class DynamicImportanceScorer : public Scorer {
 public:
  explicit DynamicImportanceScorer(const DynamicImportanceScorerOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  DynamicImportanceScorerOptions options_;
};

}  // namespace headlab
