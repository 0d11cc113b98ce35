#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct HeadsByLengthMeasureOptions : Described<HeadsByLengthMeasureOptions>, Examples {
  HeadsByLengthMeasureOptions() : Examples{"test", 0} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// What a model whose heads go by length does for texts of each length, and what its attention needs (the gate or the
/// mixer heads_by_length; where layers differ, by the first):
///   cost      sum_n k(n) K(n) L_n^2 / (H K sum_n L_n^2), k heads of width K(n) for text n of L_n tokens, over those
///   of the longest texts:
///             the products of queries, keys and values that texts need (the gate computes closed heads too)
///   lengths   by the longest text of each, "10" (the last "longer"): {"texts", "heads", "accuracy", "loss"} of the
///   questions that its texts ask
/// In evaluation mode. Throws UsageError where no attention of the model goes by length.
class HeadsByLengthMeasure : public Measure {
 public:
  explicit HeadsByLengthMeasure(const HeadsByLengthMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  HeadsByLengthMeasureOptions options_;
};

}  // namespace headlab
