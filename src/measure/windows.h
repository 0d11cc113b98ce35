#pragma once

#include "src/measure/measure.h"

namespace headlab {

struct WindowsMeasureOptions : Described<WindowsMeasureOptions> {
  std::optional<int64_t> length;
  void describe(Fields& fields) override;
};

/// Which windows the heads of the self-attentions have now, in evaluation.          (2608.19203)
/// {"length": T, "acr": sum_h min(W_h, T) / (H T) over all of them, "layers": {"dec.self.0": the same of one},
///  "pairs": causal query-key pairs of all heads over those of full attention,
///  "windows": {"dec.self.0.1": W}, a head without a window having T}
/// A removed head counts nowhere; a model without a head has acr and pairs 0.
class WindowsMeasure : public Measure {
 public:
  explicit WindowsMeasure(const WindowsMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  WindowsMeasureOptions options_;
};

}  // namespace headlab
