#include "src/task/classification.h"

#include <algorithm>

#include "modules/tensor/torch.h"
#include "src/data/labelled/records.h"
#include "src/metrics/labels.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

using LabelledParts = std::map<std::string, std::vector<LabelledText>>;

LabelledParts labelled_parts(const SplitFiles& files, const std::string& spec_folder, const std::string& text,
                             const std::string& label,
                             const std::function<std::vector<Record>(const std::string&)>& records_of) {
  return read_splits<LabelledText>(files, spec_folder, [&](const std::string& path) {
    std::vector<LabelledText> texts;
    for (const auto& row : records_of(path)) texts.push_back({row.text(text), row.text(label), row.place()});
    return texts;
  });
}

LabelledParts load_jsonl_texts(const Options& options, const std::string& spec_folder) {
  const auto& own = dynamic_cast<const JsonlTextsOptions&>(options);
  return labelled_parts(own, spec_folder, own.text, own.label, read_jsonl);
}

LabelledParts load_tsv_texts(const Options& options, const std::string& spec_folder) {
  const auto& own = dynamic_cast<const TsvTextsOptions&>(options);
  return labelled_parts(own, spec_folder, own.text, own.label,
                        [&](const std::string& path) { return read_tsv(path, own.header); });
}

// Where labelled texts come from: one line an entry.
struct LabelledSource {
  EntryInfo info;
  LabelledParts (*load)(const Options&, const std::string& spec_folder);
};
const std::vector<LabelledSource>& labelled_sources() {
  static const std::vector<LabelledSource> all{
      {{"jsonl", "a JSON object a line", "", [] { return std::make_shared<JsonlTextsOptions>(); }}, load_jsonl_texts},
      {{"tsv", "columns between tabs", "", [] { return std::make_shared<TsvTextsOptions>(); }}, load_tsv_texts}};
  return all;
}

}  // namespace

const Catalogue& labelled_text_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"labelled_text", "where labelled texts come from", {}};
    for (const auto& source : labelled_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

void JsonlTextsOptions::describe(Fields& fields) {
  describe_files(fields);
  fields.add("text", text, "the key of the text");
  fields.add("label", label, "the key of the label: a string, a number, true or false");
}

void TsvTextsOptions::describe(Fields& fields) {
  describe_files(fields);
  fields.add("text", text, "the column of the text: its name in the header, or its number from 1");
  fields.add("label", label, "the column of the label");
  fields.add("header", header, "the first line names the columns");
}

void ClassificationOptions::describe(Fields& fields) {
  fields.add("data", data, "where the texts come from");
  fields.add("tokenizer", tokenizer, "how text becomes ids");
  fields.add("max_length", max_length, "longer training texts are skipped; bos and eos count")
      .at_least(1)
      .unit("tokens");
  describe_roles(fields);
}

MetricNames ClassificationOptions::metrics() const {
  return {{"accuracy", "macro_f1", "loss"}, {"accuracy", "macro_f1", "loss"}};
}

void ClassificationOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("classification", model, {{"encoder_only", "classes"}, {"decoder_only", "classes"}}, problems);
}

Classification::Classification(const ClassificationOptions& options, const TaskContext& context) {
  if (needs_no_data(context, true)) return;
  LabelledParts loaded;
  for (const auto& source : labelled_sources())
    if (source.info.name == options.data.type()) loaded = source.load(options.data.options(), context.spec_folder);
  std::vector<std::string> lines;
  std::set<std::string> names;
  for (const auto& example : loaded.at("train")) lines.push_back(example.text);
  for (const auto& [split, examples] : loaded)
    for (const auto& example : examples) names.insert(example.label);
  tokenizer_ = one_tokenizer(options.tokenizer, lines, context);
  labels_ = labels_of(names, context);
  Skipped skipped;
  std::string counts;
  for (const auto& split : split_names()) {
    auto& part = parts_[split];
    auto& texts = ids_[split];
    for (const auto& example : loaded.at(split)) {
      auto ids = framed(*tokenizer_, tokenizer_->encode(example.text));
      if (split == "train" && static_cast<int64_t>(ids.size()) > options.max_length) {
        ++skipped.too_long;
        continue;
      }
      part.texts.push_back(example.text);
      texts.push_back(std::move(ids));
      part.classes.push_back(labels_.id(example.label, example.place));
    }
    if (texts.empty())
      throw Error("task.max_length: every training text has more than " + std::to_string(options.max_length) +
                  " tokens");
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(texts.size()));
    report_[split] = {{"texts", texts.size()}};
  }
  report_["skipped"] = skipped.too_long;
  report_["classes"] = labels_.size();
  report_["tokenizer"] = tokenizer_->size();
  summary_ = counts + " texts, " + std::to_string(labels_.size()) + " classes; " + options.tokenizer.type + " " +
             with_commas(tokenizer_->size()) + "; " + skipped.text();
}

TokenBatch Classification::collect(const std::string& split, const std::vector<int64_t>& examples,
                                   torch::Device device) const {
  const auto& part = part_of(parts_, split);
  std::vector<int64_t> targets;
  for (const auto example : examples) targets.push_back(part.classes[static_cast<std::size_t>(example)]);
  auto batch = read(split, examples, device);
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  return batch;
}

Evaluation Classification::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(parts_, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, int64_t> predicted_of;  // by example
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto best = logits.argmax(-1).cpu();
    for (std::size_t b = 0; b < batch.examples.size(); ++b)
      predicted_of[batch.examples[b]] = best.data_ptr<int64_t>()[b];
  });
  std::vector<int64_t> gold, predicted;
  Evaluation result;
  for (const auto& [example, label] : predicted_of) {
    gold.push_back(part.classes[static_cast<std::size_t>(example)]);
    predicted.push_back(label);
    result.hypotheses.push_back(labels_.name(label));
    if (static_cast<int64_t>(result.samples.size()) < options.samples)
      result.samples.push_back(
          {part.texts[static_cast<std::size_t>(example)], labels_.name(gold.back()), labels_.name(label)});
  }
  for (const auto& metric : metrics)
    result.metrics[metric] = metric == "loss"       ? totals.loss()
                             : metric == "accuracy" ? totals.accuracy()
                                                    : macro_f1(gold, predicted);
  return result;
}

}  // namespace headlab
