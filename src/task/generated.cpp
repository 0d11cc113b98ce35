#include "src/task/generated.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "modules/tensor/torch.h"
#include "src/decode/pad.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

std::vector<int64_t> wide_ids(const std::vector<int32_t>& ids) { return {ids.begin(), ids.end()}; }

}  // namespace

void GeneratedTaskOptions::describe(Fields& fields) {
  data.describe(fields);
  fields.add("format", format, "pair: an encoder-decoder reads the source and writes the target; sequence: one text")
      .one_of({"pair", "sequence"})
      .means("absent: pair for exercises of pairs");
  fields.add("score", score, "what training asks: the answers, or all that follows").one_of({"answers", "all"});
  describe_roles(fields);
}

Form GeneratedTaskOptions::form() const {
  return dynamic_cast<const GeneratorOptions&>(data.exercise.options()).form();
}

bool GeneratedTaskOptions::pairs() const { return form() == Form::pair && format.value_or("pair") == "pair"; }

void GeneratedTaskOptions::rules(Problems& problems) const {
  const auto& exercise = data.exercise.type();
  if (format && *format == "pair" && form() != Form::pair)
    problems.add("format", "expected sequence, since " + exercise + " has one text; got \"pair\"");
  if (score == "all" && (pairs() || form() == Form::label))
    problems.add("score", std::string("expected answers, since ") +
                              (pairs() ? "all of a target is asked already" : exercise + " asks a class") +
                              "; got \"all\"");
}

MetricNames GeneratedTaskOptions::metrics() const {
  return {{"accuracy", "sequence_accuracy", "loss", "perplexity"}, {"accuracy", "sequence_accuracy", "loss"}};
}

void GeneratedTaskOptions::model_rules(const Choice& model, Problems& problems) const {
  const auto name = "generated (" + data.exercise.type() + ")";
  if (pairs()) return expect_model(name, model, {{"encoder_decoder", ""}}, problems);
  switch (form()) {
    case Form::pair:
    case Form::sequence:
      return expect_model(name, model, {{"decoder_only", "language_model"}}, problems);
    case Form::aligned:
      return expect_model(name, model,
                          {{"decoder_only", "language_model"},
                           {"decoder_only", "tags"},
                           {"encoder_only", "language_model"},
                           {"encoder_only", "tags"}},
                          problems);
    case Form::label:
      return expect_model(name, model, {{"encoder_only", "classes"}, {"decoder_only", "classes"}}, problems);
  }
}

namespace {

GeneratedOptions seeded(GeneratedOptions options, uint64_t run) {
  if (options.seed < 0) options.seed = static_cast<int64_t>(run);
  return options;
}

}  // namespace

GeneratedTask::GeneratedTask(const GeneratedTaskOptions& options, const TaskContext& context)
    : data_(generate(seeded(options.data, context.seed))), pairs_(options.pairs()) {
  std::string counts;
  for (const auto& split : split_names()) {
    parts_[split] = prepared(data_.parts.at(split), split == "train" && options.score == "all");
    int64_t answers = 0;
    for (const auto& example : parts_[split])
      answers += static_cast<int64_t>(example.answer.size()) -
                 std::count(example.answer.begin(), example.answer.end(), GeneratedExample::none);
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(parts_[split].size()));
    report_[split] = {{"examples", parts_[split].size()}, {"answers", answers}};
  }
  report_["symbols"] = data_.symbols.size();
  summary_ = "exercise " + options.data.exercise.type() + ": " + counts + " examples, " +
             with_commas(data_.symbols.size()) + " symbols";
}

std::vector<GeneratedTask::Example> GeneratedTask::prepared(const std::vector<GeneratedExample>& examples,
                                                            bool score_all) const {
  constexpr int64_t none = GeneratedExample::none;
  std::vector<Example> all;
  for (const auto& given : examples) {
    Example example{wide_ids(given.source), wide_ids(given.read), wide_ids(given.answer)};
    if (data_.form == Form::pair) {
      example.answer = example.read;
      example.answer.push_back(Symbols::eos);
      if (pairs_) {
        example.source.push_back(Symbols::eos);
        example.read.insert(example.read.begin(), Symbols::bos);
      } else {  // bos source eos target; eos asks the target's first symbol
        std::vector<int64_t> text{Symbols::bos};
        text.insert(text.end(), example.source.begin(), example.source.end());
        example.answer.insert(example.answer.begin(), text.size(), none);
        text.push_back(Symbols::eos);
        text.insert(text.end(), example.read.begin(), example.read.end());
        example.read = std::move(text);
        example.source.clear();
      }
    }
    if (score_all)
      for (std::size_t t = 0; t + 1 < example.read.size(); ++t)
        if (example.answer[t] == none) example.answer[t] = example.read[t + 1];
    all.push_back(std::move(example));
  }
  return all;
}

ModelContext GeneratedTask::context() const {
  ModelContext context;
  context.source_vocabulary = context.target_vocabulary = data_.symbols.size();
  context.classes = data_.form == Form::label ? static_cast<int64_t>(data_.classes.size()) : data_.symbols.size();
  return context;
}

int64_t GeneratedTask::longest() const {
  std::size_t longest = 0;
  for (const auto& [split, part] : parts_)
    for (const auto& example : part) longest = std::max({longest, example.source.size(), example.read.size()});
  return static_cast<int64_t>(longest);
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> GeneratedTask::lengths(const std::string& split) const {
  std::vector<int64_t> source, target;
  for (const auto& example : part_of(parts_, split)) {
    if (pairs_) source.push_back(static_cast<int64_t>(example.source.size()));
    target.push_back(static_cast<int64_t>(example.read.size()));
  }
  return {source, target};
}

TokenBatch GeneratedTask::collect(const std::string& split, const std::vector<int64_t>& examples,
                                  torch::Device device) const {
  const auto& part = part_of(parts_, split);
  std::vector<std::vector<int64_t>> sources, inputs;
  std::size_t longest = 0;
  for (const auto number : examples) {
    const auto& example = part[static_cast<std::size_t>(number)];
    if (pairs_) sources.push_back(example.source);
    inputs.push_back(example.read);
    longest = std::max(longest, example.read.size());
  }
  std::vector<int64_t> targets, rows;
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const auto& answer = part[static_cast<std::size_t>(examples[b])].answer;
    for (std::size_t t = 0; t < answer.size(); ++t) {
      if (answer[t] == GeneratedExample::none) continue;
      targets.push_back(answer[t]);
      rows.push_back(static_cast<int64_t>(data_.form == Form::label ? b : b * longest + t));
    }
  }
  TokenBatch batch;
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  if (pairs_) std::tie(batch.inputs.source_BS, batch.inputs.source_mask_BS) = pad_right(sources, Symbols::pad, device);
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(inputs, Symbols::pad, device);
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(rows, torch::kLong).to(device);
  return batch;
}

Evaluation GeneratedTask::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(parts_, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, std::vector<int64_t>> said_of;  // by example
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto best = logits.argmax(-1).cpu();
    const auto* at = best.data_ptr<int64_t>();
    for (const auto number : batch.examples)
      for (const auto answer : part[static_cast<std::size_t>(number)].answer) {
        auto& said = said_of[number];
        if (answer != GeneratedExample::none) said.push_back(*at++);
      }
  });
  const auto text = [&](const std::vector<int64_t>& ids) {
    if (data_.form != Form::label) return decode(ids);
    return data_.classes.at(static_cast<std::size_t>(ids.front()));
  };
  Evaluation result;
  int64_t whole = 0;
  for (const auto& [number, said] : said_of) {
    const auto& example = part[static_cast<std::size_t>(number)];
    std::vector<int64_t> asked;
    for (const auto answer : example.answer)
      if (answer != GeneratedExample::none) asked.push_back(answer);
    whole += said == asked;
    result.hypotheses.push_back(text(said));
    if (static_cast<int64_t>(result.samples.size()) < options.samples)
      result.samples.push_back({decode(pairs_ ? example.source : example.read), text(asked), result.hypotheses.back()});
  }
  const std::map<std::string, double> all{
      {"loss", totals.loss()},
      {"perplexity", std::exp(totals.loss())},
      {"accuracy", totals.accuracy()},
      {"sequence_accuracy", static_cast<double>(whole) / static_cast<double>(said_of.size())}};
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  return result;
}

std::vector<int64_t> GeneratedTask::encode(const std::string& prompt) const {
  std::vector<int64_t> ids;
  std::istringstream words(prompt);
  for (std::string word; words >> word;) ids.push_back(data_.symbols.id(word));
  if (data_.form == Form::pair && !pairs_) ids.push_back(Symbols::eos);  // the target follows
  return ids;
}

std::string GeneratedTask::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (const auto id : ids) {
    if (id == Symbols::pad || id == Symbols::bos || id == Symbols::eos || id < 0 || id >= data_.symbols.size())
      continue;
    text += (text.empty() ? "" : " ") + data_.symbols.name(static_cast<int32_t>(id));
  }
  return text;
}

}  // namespace headlab
