#pragma once

#include "src/heads/passes.h"
#include "src/measure/measure.h"

namespace headlab {

struct LikenessMeasureOptions : Described<LikenessMeasureOptions>, Examples {
  LikenessMeasureOptions() : Examples{"valid", 500} {}
  std::string on = "output", form = "cos2";
  void describe(Fields& fields) override;
};

/// How alike the heads of an attention are: D of modules/attention/gate/diversity.h, over the tokens of a split
/// (2209.06096)
/// {"likeness": mean over attentions, "attentions": {"enc.self.0": D}, "heads": {"enc.self.0.1": {"likeness": mean over
/// the others}}}. "values" are of key/value groups: where heads share them, nothing is said of heads. In evaluation
/// mode. Throws UsageError where tokens are routed to heads, and where no attention has two heads.
class LikenessMeasure : public Measure {
 public:
  explicit LikenessMeasure(const LikenessMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  LikenessMeasureOptions options_;
};

struct HeadGradientsOptions : Described<HeadGradientsOptions>, Examples {
  HeadGradientsOptions() : Examples{"train", 64} {}
  void describe(Fields& fields) override { describe_examples(fields); }
};

/// Whether heads are pulled in one direction: the cosine of dL/dtheta_h and dL/dtheta_g, theta_h all parameters that
/// belong to head h alone (its rows and columns of the matrices that make queries, keys, values and the output; keys
/// and values that heads share are nobody's), L the mean loss of a question of the examples          (2209.06096)
/// {"cosine": mean over pairs and attentions, "squared": that of its square, "attentions": {"enc.self.0": {"cosine",
/// "squared"}}, "heads": {"enc.self.0.1": {"cosine": mean over the others}}}. In evaluation mode, in one batch after
/// another. Throws UsageError where no attention has two heads.
class HeadGradientsMeasure : public Measure {
 public:
  explicit HeadGradientsMeasure(const HeadGradientsOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  HeadGradientsOptions options_;
};

}  // namespace headlab
