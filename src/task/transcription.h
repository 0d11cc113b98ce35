#pragma once

#include <algorithm>

#include "src/task/over_frames.h"

namespace headlab {

struct TranscriptionOptions : Described<TranscriptionOptions>, OverFramesOptions {
  void describe(Fields& fields) override { describe_data(fields); }
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// What is said in a text of frames: the model reads bos and the symbols, and says the symbols and eos.
/// Metrics: token_error_rate (edits that make what a search writes what was said, over the symbols said; insertions,
/// deletions and substitutions cost 1), loss (nats a symbol and end, given the true ones before), accuracy (the same).
///
/// The search is that of EvaluateOptions (src/decode/search.h), a text's length its frames. Beam 1 of a frame_ctc is
/// CTC's own greedy decoding, the most probable path; a beam above is over prefixes, which sums their paths.
class Transcription : public OverFrames {
 public:
  Transcription(const TranscriptionOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override { return std::max(OverFrames::longest(), most_symbols_ + 1); }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TextIds writes() const override { return {}; }
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  std::string target_token(int64_t id) const override;
  MetricNames metrics() const override { return TranscriptionOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  /// What a search writes of a text of frames, best first; the score of CTC's most probable path is the path's.
  /// `number`: of the text among several, for draws. Throws UsageError for a prefix.
  Hypotheses transcribe(Model& model, const FrameText& text, const SearchOptions& search, int64_t number = 0) const;
  /// The names of ids that were written; "?" for one that is no symbol.
  std::vector<std::string> names(const std::vector<int64_t>& ids) const;
  /// The ids that a search writes of each text, in the order of `examples`. Throws UsageError for a prefix.
  std::vector<std::vector<int64_t>> written(Model& model, const std::string& split,
                                            const std::vector<int64_t>& examples, const SearchOptions& search,
                                            const Intervention& with) const;

 private:
  int64_t most_symbols_ = 0;
};

/// The fewest insertions, deletions and substitutions that make one list the other.
int64_t edit_distance(const std::vector<int64_t>& one, const std::vector<int64_t>& other);

}  // namespace headlab
