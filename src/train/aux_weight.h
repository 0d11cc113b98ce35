#pragma once

#include <set>
#include <string>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// How much a loss that modules add (gates' penalties, routers' balance) counts over a training.
struct AuxWeightOptions : Described<AuxWeightOptions> {
  std::string loss;
  double factor = 1;
  int64_t warmup = 0;
  void describe(Fields& fields) override;
};

/// The factor of each added loss at each step, on top of the module's own coefficient:
///   factor * min(1, step / warmup), step >= 1; factor where warmup is 0; 1 for a loss that is not listed
/// A warm-up lets gates be learned before they cost (2110.03252, section 3.2). It depends on the step alone.
class AuxWeights {
 public:
  explicit AuxWeights(const std::vector<AuxWeightOptions>& options) : options_(options) {}
  double of(const std::string& loss, int64_t step) const;
  /// Throws UsageError where a loss is listed that is not among those of a step.
  void check(const std::set<std::string>& losses) const;

 private:
  std::vector<AuxWeightOptions> options_;
};

}  // namespace headlab
