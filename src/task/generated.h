#pragma once

#include "src/data/generated/generate.h"
#include "src/task/task.h"

namespace headlab {

struct GeneratedTaskOptions : Described<GeneratedTaskOptions>, TaskRules {
  GeneratedOptions data;
  std::optional<std::string> format;
  std::string score = "answers";
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
  /// Whether an encoder-decoder reads sources and writes targets.
  bool pairs() const;

 private:
  Form form() const;
};

/// Exercises that a program writes (src/data/generated). The model reads
///   sequence  bos and the symbols, and says the next one
///   aligned   the symbols, and says something of each
///   pair      the source + eos and bos + the target, and says the target + eos; as a sequence: bos source eos target,
///   and says target + eos label     the symbols, and says a class
/// Training asks the answers, or with score "all" also what follows each other symbol; evaluation asks the answers.
///
/// Metrics: accuracy (share of right answers), sequence_accuracy (share of examples whose answers are all right), both
/// given the true symbols before; loss (nats an answer), perplexity.
class GeneratedTask : public Task, public WritesText {
 public:
  GeneratedTask(const GeneratedTaskOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return GeneratedTaskOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  std::map<std::string, std::string> files() const override { return {}; }

  /// Symbols between blanks; unknown ones are unk.
  std::vector<int64_t> encode(const std::string& prompt) const override;
  std::string decode(const std::vector<int64_t>& ids) const override;
  std::string token(int64_t id) const override {
    return id <= Symbols::eos ? "" : data_.symbols.name(static_cast<int32_t>(id));
  }
  TextIds text_ids() const override { return {Symbols::pad, Symbols::bos, Symbols::eos}; }
  const GeneratedData& data() const { return data_; }

 private:
  // As the model reads it. `read` and `answer` are equally long but for a label.
  struct Example {
    std::vector<int64_t> source, read, answer;
  };
  std::vector<Example> prepared(const std::vector<GeneratedExample>& examples, bool score_all) const;
  GeneratedData data_;
  bool pairs_;
  std::map<std::string, std::vector<Example>> parts_;
  std::string summary_;
  nlohmann::ordered_json report_;
};

}  // namespace headlab
