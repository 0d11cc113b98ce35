#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct KeptTokensOptions : Described<KeptTokensOptions>, Examples {
  KeptTokensOptions() : Examples{"test", 500} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// How many tokens the heads of native_sparse keep, as means over texts of T real tokens, H heads (of grouped keys
/// and values: groups):
///   cache   n / (H T), n the tokens that heads keep, all together: the share of a full cache
///   access  what the last token reads of a full cache: the keys that its heads keep / (H T)
///   pairs   query-key pairs over those that all heads would have, H T (T + 1) / 2 where causal, H T^2 where not
///   cv2     squared coefficient of variation of the heads' n_h, shared heads left out
///   load    of each head, n_h / T
/// {"cache", "access", "pairs", "cv2": means over attentions, "attentions": {"dec.self.0": {"cache", ..., "load":
/// {"3": 0.25}}}}. In evaluation mode. Throws UsageError where no attention has the gate.
class KeptTokensMeasure : public Measure {
 public:
  explicit KeptTokensMeasure(const KeptTokensOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  KeptTokensOptions options_;
};

}  // namespace headlab
