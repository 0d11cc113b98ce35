#pragma once

#include "src/measure/measure.h"

namespace headlab {

/// Which frequencies the heads of attentions with the position `adarope` have now, and how their scores are scaled.
///                                                                        (2607.19363)
/// {"heads": {"dec.self.0.1": {"frequencies": [w_i, radians a token], "wavelengths": [2 pi / w_i, tokens], "factor": c,
///  "growth": a}}, "spread": mean over pairs and attentions of the standard deviation over heads of ln w_i; 0: all
///  heads are alike}
/// Throws UsageError where no attention has that position.
class FrequenciesMeasure : public Measure {
 public:
  explicit FrequenciesMeasure(const NoOptions&) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
