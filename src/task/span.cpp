#include "src/task/span.h"

#include <algorithm>
#include <limits>

#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"
#include "src/data/labelled/records.h"
#include "src/metrics/answers.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

using SpanParts = std::map<std::string, std::vector<SpanExample>>;

// The example of a row; the answer's words are those that its characters touch.
SpanExample span_of(const Record& row, const std::string& question, const std::string& context,
                    const std::string& answer, const std::string& start) {
  SpanExample example;
  example.question = row.text(question);
  example.context = row.text(context);
  example.answer = row.text(answer);
  example.place = row.place();
  example.words = split_words(example.context);
  const auto first = row.number(start), length = static_cast<int64_t>(decode_utf8(example.answer).size());
  const auto all = static_cast<int64_t>(decode_utf8(example.context).size());
  if (length == 0) throw FileError(row.place() + ": field " + in_quotes(answer) + ": expected an answer, got none");
  if (first + length > all || part_of_text(example.context, first, first + length) != example.answer)
    throw FileError(row.place() + ": expected the answer " + in_quotes(example.answer) + " at character " +
                    std::to_string(first) + " of the context, got " +
                    in_quotes(part_of_text(example.context, std::min(first, all), std::min(first + length, all))) +
                    "; places count characters from 0");
  example.first = -1;
  for (std::size_t i = 0; i < example.words.size(); ++i) {
    const auto& word = example.words[i];
    if (word.end <= first || word.start >= first + length) continue;
    if (example.first < 0) example.first = static_cast<int64_t>(i);
    example.last = static_cast<int64_t>(i);
  }
  if (example.first < 0) throw FileError(row.place() + ": the answer " + in_quotes(example.answer) + " has no word");
  return example;
}

template <class Own>
SpanParts span_parts(const Own& own, const std::string& spec_folder,
                     const std::function<std::vector<Record>(const std::string&)>& records_of) {
  return read_splits<SpanExample>(own, spec_folder, [&](const std::string& path) {
    std::vector<SpanExample> examples;
    for (const auto& row : records_of(path))
      examples.push_back(span_of(row, own.question, own.context, own.answer, own.start));
    return examples;
  });
}

SpanParts load_jsonl_spans(const Options& options, const std::string& spec_folder) {
  return span_parts(dynamic_cast<const JsonlSpansOptions&>(options), spec_folder, read_jsonl);
}

SpanParts load_tsv_spans(const Options& options, const std::string& spec_folder) {
  const auto& own = dynamic_cast<const TsvSpansOptions&>(options);
  return span_parts(own, spec_folder, [&](const std::string& path) { return read_tsv(path, own.header); });
}

// For each pronoun of the English side: which words does it stand for? The question is the pronoun and the word after
// it, if those two words stand in the sentence once.
SpanParts load_grammar_spans(const Options& options, const std::string&) {
  const auto& own = dynamic_cast<const GrammarSpansOptions&>(options);
  SpanParts parts;
  for (const auto& split : grammar::generate(own.grammar).splits)
    for (std::size_t n = 0; n < split.examples.size(); ++n) {
      const auto& gold = split.examples[n].source_gold.tokens;
      SpanExample shared;
      shared.place = "grammar " + split.name + ":" + std::to_string(n + 1);
      int64_t at = 0;
      for (std::size_t i = 0; i < gold.size(); ++i) {
        if (i > 0 && gold[i].space_before) {
          shared.context += " ";
          ++at;
        }
        const auto length = static_cast<int64_t>(decode_utf8(gold[i].form).size());
        shared.words.push_back({gold[i].form, at, at + length});
        shared.context += gold[i].form;
        at += length;
      }
      const auto two_words = [&](std::size_t i) {
        return i + 1 < gold.size() ? gold[i].form + " " + gold[i + 1].form : gold[i].form;
      };
      for (const auto& pronoun : split.examples[n].pronouns) {
        auto example = shared;
        example.question = two_words(static_cast<std::size_t>(pronoun.source));
        int64_t times = 0;
        for (std::size_t i = 0; i < gold.size(); ++i) times += two_words(i) == example.question;
        if (times != 1) continue;
        example.first = pronoun.source_antecedent.first;
        example.last = pronoun.source_antecedent.last;
        example.answer = part_of_text(example.context, example.words[static_cast<std::size_t>(example.first)].start,
                                      example.words[static_cast<std::size_t>(example.last)].end);
        parts[split.name].push_back(std::move(example));
      }
    }
  return parts;
}

// Where questions and texts come from: one line an entry.
struct SpanSource {
  EntryInfo info;
  SpanParts (*load)(const Options&, const std::string& spec_folder);
};
const std::vector<SpanSource>& span_sources() {
  static const std::vector<SpanSource> all{
      {{"grammar", "pronouns of headlab's own grammar and what they stand for", "",
        [] { return std::make_shared<GrammarSpansOptions>(); }},
       load_grammar_spans},
      {{"jsonl", "a JSON object a line", "", [] { return std::make_shared<JsonlSpansOptions>(); }}, load_jsonl_spans},
      {{"tsv", "columns between tabs", "", [] { return std::make_shared<TsvSpansOptions>(); }}, load_tsv_spans}};
  return all;
}

void describe_span_fields(Fields& fields, std::string& question, std::string& context, std::string& answer,
                          std::string& start) {
  fields.add("question", question, "the field with the question");
  fields.add("context", context, "the field with the text");
  fields.add("answer", answer, "the field with the answer, as it stands in the text");
  fields.add("start", start, "the field with the place of the answer's first character in the text, from 0");
}

}  // namespace

const Catalogue& span_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"question_text", "where questions and the texts that answer them come from", {}};
    for (const auto& source : span_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

void JsonlSpansOptions::describe(Fields& fields) {
  describe_files(fields);
  describe_span_fields(fields, question, context, answer, start);
}

void TsvSpansOptions::describe(Fields& fields) {
  describe_files(fields);
  describe_span_fields(fields, question, context, answer, start);
  fields.add("header", header, "the first line names the columns; without, they are \"1\", \"2\" ...");
}

void SpanOptions::describe(Fields& fields) {
  fields.add("data", data, "where the questions come from");
  fields.add("tokenizer", tokenizer, "how words become ids");
  fields.add("max_length", max_length, "longer training texts are skipped; question, bos and eos count")
      .at_least(1)
      .unit("tokens");
  fields.add("max_answer", max_answer, "longest answer that is given").at_least(1).unit("tokens");
  describe_roles(fields);
}

MetricNames SpanOptions::metrics() const { return {{"exact_match", "f1", "loss"}, {"exact_match", "f1", "loss"}}; }

void SpanOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("span", model, {{"encoder_only", "spans"}, {"decoder_only", "spans"}}, problems);
}

std::pair<int64_t, int64_t> best_span(const std::vector<double>& start_T, const std::vector<double>& end_T,
                                      const std::vector<bool>& allowed, int64_t max_answer) {
  std::pair<int64_t, int64_t> best{0, 0};
  auto most = -std::numeric_limits<double>::infinity();
  const auto T = static_cast<int64_t>(allowed.size());
  for (int64_t start = 0; start < T; ++start) {
    if (!allowed[static_cast<std::size_t>(start)]) continue;
    for (auto end = start; end < std::min(T, start + max_answer); ++end) {
      const auto sum = start_T[static_cast<std::size_t>(start)] + end_T[static_cast<std::size_t>(end)];
      if (!allowed[static_cast<std::size_t>(end)] || sum <= most) continue;
      most = sum;
      best = {start, end};
    }
  }
  return best;
}

SpanTask::SpanTask(const SpanOptions& options, const TaskContext& context) : max_answer_(options.max_answer) {
  if (needs_no_data(context, false)) return;
  SpanParts loaded;
  for (const auto& source : span_sources())
    if (source.info.name == options.data.type()) loaded = source.load(options.data.options(), context.spec_folder);
  const auto texts = [](const std::vector<TextWord>& words) {
    std::vector<std::string> all;
    for (const auto& word : words) all.push_back(word.text);
    return all;
  };
  const auto joined = [](const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  };
  std::vector<std::string> lines;
  for (const auto& example : loaded["train"]) {
    lines.push_back(joined(texts(split_words(example.question))));
    lines.push_back(joined(texts(example.words)));
  }
  tokenizer_ = one_tokenizer(options.tokenizer, lines, context);
  Skipped skipped;
  std::string counts;
  for (const auto& split : split_names()) {
    auto& part = parts_[split];
    for (auto& text : loaded[split]) {
      Example example;
      std::vector<int64_t> ids{tokenizer_->bos_id()};  // bos question eos context eos
      for (const auto& pieces : word_pieces(*tokenizer_, texts(split_words(text.question))))
        ids.insert(ids.end(), pieces.begin(), pieces.end());
      ids.push_back(tokenizer_->eos_id());
      example.word_at.assign(ids.size(), -1);
      const auto words = word_pieces(*tokenizer_, texts(text.words));
      for (std::size_t i = 0; i < words.size(); ++i) {
        const auto word = static_cast<int64_t>(i);
        if (word == text.first) example.start = static_cast<int64_t>(ids.size());
        ids.insert(ids.end(), words[i].begin(), words[i].end());
        example.word_at.resize(ids.size(), word);
        if (word == text.last) example.end = static_cast<int64_t>(ids.size()) - 1;
      }
      ids.push_back(tokenizer_->eos_id());
      example.word_at.push_back(-1);
      if (split == "train" && static_cast<int64_t>(ids.size()) > options.max_length) {
        ++skipped.too_long;
        continue;
      }
      example.text = std::move(text);
      part.push_back(std::move(example));
      ids_[split].push_back(std::move(ids));
    }
    if (part.empty())
      throw Error(
          "span: expected questions in the " + split + " data, got none" +
          (skipped.too_long > 0 ? " of at most " + std::to_string(options.max_length) + " tokens" : std::string()));
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.size()));
    report_[split] = {{"questions", part.size()}};
  }
  report_["skipped"] = skipped.too_long;
  report_["tokenizer"] = tokenizer_->size();
  summary_ =
      counts + " questions; " + options.tokenizer.type + " " + with_commas(tokenizer_->size()) + "; " + skipped.text();
}

TokenBatch SpanTask::collect(const std::string& split, const std::vector<int64_t>& examples,
                             torch::Device device) const {
  const auto& part = part_of(parts_, split);
  std::vector<int64_t> targets;
  for (const auto number : examples) {
    const auto& example = part[static_cast<std::size_t>(number)];
    targets.insert(targets.end(), {example.start, example.end});
  }
  auto batch = read(split, examples, device);
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.smooth = false;
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  return batch;
}

Evaluation SpanTask::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(parts_, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, std::string> answer_of;  // by example
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto rows = logits.to(torch::kCPU, torch::kFloat64).contiguous();
    const auto T = rows.size(1);
    for (std::size_t b = 0; b < batch.examples.size(); ++b) {
      const auto& example = part[static_cast<std::size_t>(batch.examples[b])];
      const auto* start = rows.data_ptr<double>() + 2 * static_cast<int64_t>(b) * T;
      std::vector<bool> allowed;
      for (const auto word : example.word_at) allowed.push_back(word >= 0);
      const auto [first, last] = best_span({start, start + T}, {start + T, start + 2 * T}, allowed, max_answer_);
      const auto& words = example.text.words;
      answer_of[batch.examples[b]] = part_of_text(
          example.text.context, words[static_cast<std::size_t>(example.word_at[static_cast<std::size_t>(first)])].start,
          words[static_cast<std::size_t>(example.word_at[static_cast<std::size_t>(last)])].end);
    }
  });
  Evaluation result;
  double exact = 0, f1 = 0;
  for (const auto& [number, answer] : answer_of) {
    const auto& text = part[static_cast<std::size_t>(number)].text;
    exact += exact_match(text.answer, answer);
    f1 += answer_f1(text.answer, answer);
    result.hypotheses.push_back(answer);
    if (static_cast<int64_t>(result.samples.size()) < options.samples)
      result.samples.push_back({text.question + " | " + text.context, text.answer, answer});
  }
  const auto count = static_cast<double>(answer_of.size());
  const std::map<std::string, double> all{{"loss", totals.loss()}, {"exact_match", exact / count}, {"f1", f1 / count}};
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

}  // namespace headlab
