#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct ImportancesOptions : Described<ImportancesOptions>, Examples {
  ImportancesOptions() : Examples{"valid", 500} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// How far the importances of the gates `dynamic_importance` are from uniform, in nats, over real tokens. (2108.01377)
/// {"kl": mean over attentions, "attentions": {"enc.self.0": {"kl": mean of KL(a || uniform) <= ln H}},
///  "heads": {"enc.self.0.1": {"importance": mean of a_h, "kl": mean of a_h ln(H a_h), its part of the sum}}}
/// In evaluation mode. Throws UsageError where no attention has such a gate.
class ImportancesMeasure : public Measure {
 public:
  explicit ImportancesMeasure(const ImportancesOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  ImportancesOptions options_;
};

}  // namespace headlab
