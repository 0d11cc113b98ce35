#pragma once

#include "src/data/grammar/grammar.h"
#include "src/data/labelled/conll.h"
#include "src/data/labelled/split_files.h"
#include "src/task/one_text.h"

namespace headlab {

struct ConlluOptions : Described<ConlluOptions>, SplitFiles {
  std::string column = "upos";
  void describe(Fields& fields) override;
};

struct ColumnsOptions : Described<ColumnsOptions>, SplitFiles {
  int64_t word = 1, tag = -1;
  std::string separator;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

struct GrammarTagsOptions : Described<GrammarTagsOptions> {
  std::string language = "en", column = "upos";
  grammar::GrammarOptions grammar;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { grammar.rules(problems); }
};

const Catalogue& tagged_text_catalogue();

struct TaggingOptions : Described<TaggingOptions>, TaskRules {
  Choice data{tagged_text_catalogue, "grammar"};
  std::string scheme = "words";
  TokenizerOptions tokenizer;
  int64_t max_length = 256;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { one_text_rules(tokenizer, problems); }
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// A tag for each word. Each word is cut into pieces by itself; the model reads bos + all pieces + eos, and the tag is
/// asked at the first piece of each word (1810.04805, section 5.3).
///
/// Metrics: loss (nats a word), accuracy (share of words), token_f1 (of the words whose tag is not "O":
/// micro-averaged), and for the scheme "entities" entity_precision, entity_recall and entity_f1 (conlleval's,
/// src/metrics/labels.h).
class Tagging : public OneTextTask {
 public:
  Tagging(const TaggingOptions& options, const TaskContext& context);
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return metrics_; }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  const Labels& labels() const { return labels_; }

 private:
  struct Example {
    std::vector<std::string> words;
    std::vector<int64_t> first;  // where each word's first piece stands among the ids
    std::vector<int64_t> tags;
  };
  std::map<std::string, std::vector<Example>> parts_;
  MetricNames metrics_;
};

}  // namespace headlab
