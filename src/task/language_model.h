#pragma once

#include "src/data/grammar/grammar.h"
#include "src/data/plain_text.h"
#include "src/data/text_codec.h"
#include "src/task/task.h"

namespace headlab {

/// Three text files.
struct TextFilesOptions : Described<TextFilesOptions> {
  std::string train, valid, test;
  void describe(Fields& fields) override;
};

/// One text file, cut in three.
struct TextFileOptions : Described<TextFileOptions> {
  std::string file, cut = "line";
  double valid = 0.05, test = 0.05;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// One side of headlab's own grammar, a sentence a line.
struct GrammarTextOptions : Described<GrammarTextOptions> {
  std::string language = "en";
  grammar::GrammarOptions grammar;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { grammar.rules(problems); }
};

const Catalogue& plain_text_catalogue();

struct LanguageModelOptions : Described<LanguageModelOptions>, TaskRules {
  Choice data{plain_text_catalogue, "grammar"};
  std::string units = "pieces";
  TokenizerOptions tokenizer;
  int64_t block = 128;
  std::optional<int64_t> train_stride, stride;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// Predicts the next token of a text. A part of the data is one stream of ids, its lines joined (TextCodec). An example
/// is a window of `block` tokens: the model reads bos and all but the last, and predicts all.
///
/// Training windows start every `train_stride` tokens (block: consecutive ones; 1: any offset may be drawn, and an
/// epoch sees each token block times). Evaluation windows start every `stride` tokens; of each but the first only the
/// last `stride` tokens are scored, the others are what comes before them. So every token of the stream is scored
/// exactly once, and with stride < block after at least block - stride others (the beginning of the text apart).
///
/// Metrics: loss (nats a token), perplexity (exp of it), accuracy; word_perplexity = exp(nats of the whole text / its
/// words, each line's end counted as one) and bits_per_character = nats / ln 2 / code points, line ends included. Those
/// two are of the raw text, whatever the tokens are, and of whole splits alone. The signature names the denominators.
class LanguageModel : public Task, public WritesText {
 public:
  LanguageModel(const LanguageModelOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override { return block_; }
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  std::string token(int64_t id) const override { return codec_->decode({id}); }
  MetricNames metrics() const override { return LanguageModelOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  std::map<std::string, std::string> files() const override { return codec_->files(); }

  std::vector<int64_t> encode(const std::string& prompt) const override { return codec_->encode(prompt); }
  std::string decode(const std::vector<int64_t>& ids) const override { return codec_->decode(ids); }
  TextIds text_ids() const override { return {codec_->pad_id(), codec_->bos_id(), codec_->eos_id(), codec_->unk_id()}; }
  TextKind reads() const override { return {text_ids(), false}; }
  const TextCodec& codec() const { return *codec_; }

 private:
  struct Window {
    int64_t start, length, scored;  // the last `scored` tokens of stream[start, start + length) are predicted
  };
  struct Part {
    std::vector<int32_t> stream;
    std::vector<Window> windows;
    int64_t words = 0, characters = 0, lines = 0, unknown = 0;
  };
  static std::vector<Window> windows_of(int64_t tokens, int64_t block, int64_t stride, bool score_all);
  std::map<std::string, Part> parts_;
  std::shared_ptr<const TextCodec> codec_;
  int64_t block_ = 0, stride_ = 0;
  std::string summary_;
  nlohmann::ordered_json report_;
};

}  // namespace headlab
