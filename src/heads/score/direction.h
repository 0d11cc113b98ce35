#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct DirectionOptions : Described<DirectionOptions>, Examples {
  DirectionOptions() : Examples{"valid", 500} {}
  std::string answer;
  std::optional<int64_t> layer;
  void describe(Fields& fields) override;
};

/// s_h = mean over prompts whose answer is `answer` of <o_h, r>, o_h head h's share of its attention's output at the
/// prompt's last token, r = (m_answer - m_other) / |m_answer - m_other|, m the mean of the residual stream there over
/// prompts whose answer it is and over the others.          (2508.19697, refusal-direction-guided head ablation; the
/// direction: 2406.11717, section 2.3) The last token of a prompt is the one that asks the example's first question.
/// `layer`: after which layer the residual stream is read. In evaluation mode, for models of one text that say the next
/// token. Throws UsageError for other models, an answer of more or less than one token, answers that all are it or
/// none, routed heads, and outputs that are no sums over heads.
class DirectionScorer : public Scorer {
 public:
  explicit DirectionScorer(const DirectionOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  DirectionOptions options_;
};

}  // namespace headlab
