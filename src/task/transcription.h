#pragma once

#include "src/task/frames.h"

namespace headlab {

struct TranscriptionOptions : Described<TranscriptionOptions>, TaskRules {
  Choice data{frame_source_catalogue, "phones"};
  void describe(Fields& fields) override;
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// What is said in a text of frames: the model reads bos and the symbols, and says the symbols and eos.
/// Metrics: token_error_rate (edits that make what greedy search writes what was said, over the symbols said; insertions,
/// deletions and substitutions cost 1), loss (nats a symbol, given the true ones before), accuracy (the same).
class Transcription : public Task {
 public:
  Transcription(const TranscriptionOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TextKind reads() const override { return {{1, -1, -1, -1}, false}; }
  TextIds writes() const override { return {}; }
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const override;
  std::string target_token(int64_t id) const override;
  MetricNames metrics() const override { return TranscriptionOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  std::map<std::string, std::string> files() const override { return {}; }
  const FrameData& data() const { return data_; }

 private:
  std::vector<std::vector<int64_t>> written(Model& model, const Batch& batch, const Intervention& with) const;
  FrameData data_;
  int64_t most_symbols_ = 0;
  std::string summary_;
  nlohmann::ordered_json report_;
};

/// The fewest insertions, deletions and substitutions that make one list the other.
int64_t edit_distance(const std::vector<int64_t>& one, const std::vector<int64_t>& other);

}  // namespace headlab
