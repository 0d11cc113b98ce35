#pragma once

#include "src/data/grammar/grammar.h"
#include "src/data/parallel_text.h"
#include "src/data/tokenizers.h"
#include "src/decode/pad.h"
#include "src/task/annotated.h"
#include "src/task/one_text.h"
#include "src/task/task.h"

namespace headlab {

struct ParallelFilesOptions : Described<ParallelFilesOptions> {
  std::string train_source, train_target, valid_source, valid_target, test_source, test_target;
  void describe(Fields& fields) override;
};

const Catalogue& translation_data_catalogue();

struct TranslationOptions : Described<TranslationOptions>, TaskRules {
  Choice data{translation_data_catalogue, "grammar"};
  TokenizerOptions tokenizer;
  int64_t max_length = 100;
  void describe(Fields& fields) override;
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// Translates line by line. Source: ids + eos; the decoder reads bos + ids and predicts ids + eos.
/// Metrics: bleu, chrf (sacreBLEU's), loss (nats a target token), perplexity (exp of it), accuracy (share of target
/// tokens whose largest logit is right, given the reference before them).
class Translation : public Task, public KnowsTrees {
 public:
  Translation(const TranslationOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TextKind reads() const override;
  TextIds writes() const override;
  std::string token(int64_t id) const override { return written(tokenizers_->source, id); }
  std::string target_token(int64_t id) const override { return written(tokenizers_->target, id); }
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return TranslationOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  std::map<std::string, std::string> files() const override;

  /// Scores and translations of each line, best first; each begins with options.prefix. `first`: the number of the
  /// first line, for draws that go on from an earlier call.
  std::vector<std::vector<std::pair<double, std::string>>> translate(Model& model,
                                                                     const std::vector<std::string>& lines,
                                                                     const SearchOptions& options,
                                                                     int64_t first = 0) const;
  /// Of the sources of headlab's own grammar; of other text none.
  std::vector<AnnotatedText> trees(const std::string& split, int64_t limit) const override;
  const TokenizerPair& tokenizers() const { return *tokenizers_; }

 private:
  // Ids of a split's sources, without eos.
  std::vector<std::vector<int64_t>> sources(const std::string& split) const;
  struct Part {
    ParallelText text;
    EncodedPairs pairs;
    std::vector<grammar::GoldSentence> source_gold;  // of each line of the text; empty where there is none
  };
  std::map<std::string, Part> parts_;
  std::optional<TokenizerPair> tokenizers_;
  std::string summary_;
  nlohmann::ordered_json report_;
};

}  // namespace headlab
