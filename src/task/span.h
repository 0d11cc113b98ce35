#pragma once

#include "src/data/grammar/grammar.h"
#include "src/data/labelled/split_files.h"
#include "src/data/labelled/words.h"
#include "src/task/one_text.h"

namespace headlab {

/// A question about a text and the words that answer it.
struct SpanExample {
  std::string question, context, answer;
  std::vector<TextWord> words;  // of the context
  int64_t first = 0, last = 0;  // the answer's words
  std::string place;
};

struct JsonlSpansOptions : Described<JsonlSpansOptions>, SplitFiles {
  std::string question = "question", context = "context", answer = "answer", start = "answer_start";
  void describe(Fields& fields) override;
};

struct TsvSpansOptions : Described<TsvSpansOptions>, SplitFiles {
  std::string question = "question", context = "context", answer = "answer", start = "answer_start";
  bool header = true;
  void describe(Fields& fields) override;
};

struct GrammarSpansOptions : Described<GrammarSpansOptions> {
  grammar::GrammarOptions grammar;
  void describe(Fields& fields) override { grammar.describe(fields); }
  void rules(Problems& problems) const override { grammar.rules(problems); }
};

const Catalogue& span_catalogue();

struct SpanOptions : Described<SpanOptions>, TaskRules {
  Choice data{span_catalogue, "grammar"};
  TokenizerOptions tokenizer;
  int64_t max_length = 384, max_answer = 30;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { one_text_rules(tokenizer, problems); }
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// The words of a text that answer a question. The model reads bos + question + eos + context + eos, each word cut into
/// pieces by itself, and says where the answer starts (its first word's first piece) and ends (its last word's last
/// piece). The answer given is the text from a start to an end with the largest sum of logits, both in the context, in
/// order, at most `max_answer` pieces.          (1810.04805, section 4.2)
///
/// Metrics: exact_match and f1 as SQuAD's evaluation compares texts (src/metrics/answers.h), with one gold answer;
/// loss: nats a position (start and end are two).
class SpanTask : public OneTextTask {
 public:
  SpanTask(const SpanOptions& options, const TaskContext& context);
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return SpanOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;

 private:
  struct Example {
    SpanExample text;
    std::vector<int64_t> word_at;  // the word of the context that each id belongs to; -1: none
    int64_t start = 0, end = 0;    // places among the ids
  };
  std::map<std::string, std::vector<Example>> parts_;
  int64_t max_answer_;
};

/// The place [start, end] of the largest start_T[start] + end_T[end] with allowed[start], allowed[end], start <= end
/// and end - start < max_answer; the first of equals. There must be an allowed place.
std::pair<int64_t, int64_t> best_span(const std::vector<double>& start_T, const std::vector<double>& end_T,
                                      const std::vector<bool>& allowed, int64_t max_answer);

}  // namespace headlab
