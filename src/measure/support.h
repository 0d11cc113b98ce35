#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct SupportMeasureOptions : Described<SupportMeasureOptions>, Examples {
  SupportMeasureOptions() : Examples{"valid", 200} {}
  double above = 1e-4;
  int64_t least = 10;
  void describe(Fields& fields) override;
};

/// How many weights of a query are above `above`, as a mean over the queries that see at least `least` keys, padding
/// left out:
/// {"support": mean over heads, "heads": {"enc.self.0.1": {"support": mean}}, "queries": those of one head}
/// (1911.03898) In evaluation mode. Throws UsageError where tokens are routed to heads, and where no query sees so many
/// keys.
class SupportMeasure : public Measure {
 public:
  explicit SupportMeasure(const SupportMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  SupportMeasureOptions options_;
};

}  // namespace headlab
