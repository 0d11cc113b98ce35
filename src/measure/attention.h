#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct AttentionMeasureOptions : Described<AttentionMeasureOptions> {
  std::string split = "valid";
  int64_t texts = 3, longest = 24;
  void describe(Fields& fields) override;
};

/// What every head looks at, token by token, on the first texts of a split that are at most `longest` tokens on each
/// side:
///   {"texts": [{"source": [token], "target": [token]}],
///    "heads": {"enc.self.0.1": {"attention": [weights of text 1, of text 2, ...]}}}
/// A text's weights are T x S bytes, query by query, in base64: 255 w, rounded. Queries and keys are the source's
/// tokens in the encoder; the target's, as the decoder reads them (bos first), and the source's in a cross-attention. A
/// model of one text has the target alone. Keys that are no tokens (persistent vectors) are left out. In evaluation
/// mode. Throws UsageError where tokens are routed to heads, and where the split has no text so short.
class AttentionMeasure : public Measure {
 public:
  explicit AttentionMeasure(const AttentionMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  AttentionMeasureOptions options_;
};

}  // namespace headlab
