#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct CouplingsMeasureOptions : Described<CouplingsMeasureOptions>, Examples {
  CouplingsMeasureOptions() : Examples{"valid", 200} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// How much a routing has decided: the entropy of the couplings c_i of an input capsule, - sum_j c_ij log c_ij, as a
/// mean over the input capsules of all tokens, padding left out.          (mixes that route: 1904.03100, 1909.00188)
/// {"attentions": {"enc.self.0": {"entropy": nats, "of_uniform": its part of log J}}, "entropy": mean over the
/// attentions, "of_uniform"}. In evaluation mode. Throws UsageError where no attention routes its heads' outputs.
class CouplingsMeasure : public Measure {
 public:
  explicit CouplingsMeasure(const CouplingsMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  CouplingsMeasureOptions options_;
};

}  // namespace headlab
