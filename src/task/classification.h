#pragma once

#include "src/data/labelled/split_files.h"
#include "src/task/one_text.h"

namespace headlab {

/// A text and its label, with where it stands ("x.tsv:3").
struct LabelledText {
  std::string text, label, place;
};

struct JsonlTextsOptions : Described<JsonlTextsOptions>, SplitFiles {
  std::string text = "text", label = "label";
  void describe(Fields& fields) override;
};

struct TsvTextsOptions : Described<TsvTextsOptions>, SplitFiles {
  std::string text = "text", label = "label";
  bool header = true;
  void describe(Fields& fields) override;
};

const Catalogue& labelled_text_catalogue();

struct ClassificationOptions : Described<ClassificationOptions>, TaskRules {
  Choice data{labelled_text_catalogue, "jsonl"};
  TokenizerOptions tokenizer;
  int64_t max_length = 256;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { one_text_rules(tokenizer, problems); }
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// One label for a text. The model reads bos + pieces + eos and says a class.
/// Metrics: loss (nats a text), accuracy, macro_f1 (mean F1 of the classes that occur).
class Classification : public OneTextTask {
 public:
  Classification(const ClassificationOptions& options, const TaskContext& context);
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return ClassificationOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  const Labels& labels() const { return labels_; }

 private:
  struct Part {
    std::vector<std::string> texts;
    std::vector<int64_t> classes;
  };
  std::map<std::string, Part> parts_;
};

}  // namespace headlab
