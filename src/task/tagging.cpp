#include "src/task/tagging.h"

#include <algorithm>

#include "modules/tensor/torch.h"
#include "src/metrics/labels.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

using TaggedParts = std::map<std::string, std::vector<TaggedSentence>>;

TaggedParts load_conllu(const Options& options, const std::string& spec_folder) {
  const auto& own = dynamic_cast<const ConlluOptions&>(options);
  return read_splits<TaggedSentence>(own, spec_folder,
                                     [&](const std::string& path) { return read_conllu(path, own.column); });
}

TaggedParts load_columns(const Options& options, const std::string& spec_folder) {
  const auto& own = dynamic_cast<const ColumnsOptions&>(options);
  return read_splits<TaggedSentence>(own, spec_folder, [&](const std::string& path) {
    auto sentences = read_columns(path, own.word, own.tag);
    if (own.separator.empty()) return sentences;
    for (auto& sentence : sentences)
      for (auto& tag : sentence.tags) tag = tag.substr(0, tag.find(own.separator));
    return sentences;
  });
}

TaggedParts load_grammar_tags(const Options& options, const std::string&) {
  const auto& own = dynamic_cast<const GrammarTagsOptions&>(options);
  TaggedParts parts;
  for (const auto& split : grammar::generate(own.grammar).splits)
    for (std::size_t i = 0; i < split.examples.size(); ++i) {
      const auto& gold = own.language == "en" ? split.examples[i].source_gold : split.examples[i].target_gold;
      auto& sentence = parts[split.name].emplace_back();
      sentence.place = "grammar " + split.name + ":" + std::to_string(i + 1);
      for (const auto& token : gold.tokens) {
        sentence.words.push_back(token.form);
        sentence.tags.push_back(own.column == "upos" ? token.pos : token.relation);
      }
    }
  return parts;
}

// Where tagged sentences come from: one line an entry.
struct TaggedSource {
  EntryInfo info;
  TaggedParts (*load)(const Options&, const std::string& spec_folder);
};
const std::vector<TaggedSource>& tagged_sources() {
  static const std::vector<TaggedSource> all{
      {{"grammar", "sentences of headlab's own grammar with their parts of speech", "",
        [] { return std::make_shared<GrammarTagsOptions>(); }},
       load_grammar_tags},
      {{"conllu", "a column of CoNLL-U files (Universal Dependencies)", "",
        [] { return std::make_shared<ConlluOptions>(); }},
       load_conllu},
      {{"columns", "a word and its tag a line (CoNLL-2003 and its like)", "",
        [] { return std::make_shared<ColumnsOptions>(); }},
       load_columns}};
  return all;
}

}  // namespace

const Catalogue& tagged_text_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"tagged_text", "where tagged sentences come from", {}};
    for (const auto& source : tagged_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

void ConlluOptions::describe(Fields& fields) {
  describe_files(fields);
  fields.add("column", column, "the column that is the tag").one_of(conllu_columns());
}

void ColumnsOptions::describe(Fields& fields) {
  describe_files(fields);
  fields.add("word", word, "the column of the word, from 1; -1: the last");
  fields.add("tag", tag, "the column of the tag, from 1; -1: the last");
  fields.add("separator", separator, "what stands between several tags of one word, of which the first is taken")
      .means("empty: the column is one tag");
}

void ColumnsOptions::rules(Problems& problems) const {
  if (word == 0) problems.add("word", "columns count from 1, or from -1 at the end; got 0");
  if (tag == 0) problems.add("tag", "columns count from 1, or from -1 at the end; got 0");
}

void GrammarTagsOptions::describe(Fields& fields) {
  fields.add("language", language, "which side of the pairs").one_of({"en", "de"});
  fields.add("column", column, "what is the tag: the part of speech, or the relation to the head")
      .one_of({"upos", "deprel"});
  grammar.describe(fields);
}

void TaggingOptions::describe(Fields& fields) {
  fields.add("data", data, "where the sentences come from");
  fields.add("scheme", scheme, "what tags are of: single words, or entities of several (B-, I-, O; also E-, S-)")
      .one_of({"words", "entities"});
  fields.add("tokenizer", tokenizer, "how words become ids");
  fields.add("max_length", max_length, "longer training sentences are skipped; bos and eos count")
      .at_least(1)
      .unit("tokens");
  describe_roles(fields);
}

MetricNames TaggingOptions::metrics() const {
  if (scheme == "words") return {{"accuracy", "token_f1", "loss"}, {"accuracy", "loss"}};
  return {{"entity_f1", "entity_precision", "entity_recall", "token_f1", "accuracy", "loss"},
          {"entity_f1", "token_f1", "accuracy", "loss"}};
}

void TaggingOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("tagging", model, {{"encoder_only", "tags"}, {"decoder_only", "tags"}}, problems);
}

Tagging::Tagging(const TaggingOptions& options, const TaskContext& context) : metrics_(options.metrics()) {
  if (needs_no_data(context, true)) return;
  TaggedParts loaded;
  for (const auto& source : tagged_sources())
    if (source.info.name == options.data.type()) loaded = source.load(options.data.options(), context.spec_folder);
  std::vector<std::string> lines;
  std::set<std::string> names;
  for (const auto& sentence : loaded.at("train")) {
    auto& line = lines.emplace_back();
    for (const auto& word : sentence.words) line += (line.empty() ? "" : " ") + word;
  }
  for (const auto& [split, sentences] : loaded)
    for (const auto& sentence : sentences) names.insert(sentence.tags.begin(), sentence.tags.end());
  tokenizer_ = one_tokenizer(options.tokenizer, lines, context);
  labels_ = labels_of(names, context);
  Skipped skipped;
  std::string counts;
  for (const auto& split : split_names()) {
    auto& part = parts_[split];
    int64_t words = 0;
    for (auto& sentence : loaded.at(split)) {
      Example example;
      std::vector<int64_t> ids;
      for (const auto& pieces : word_pieces(*tokenizer_, sentence.words)) {
        example.first.push_back(static_cast<int64_t>(ids.size()) + 1);  // after bos
        ids.insert(ids.end(), pieces.begin(), pieces.end());
      }
      ids = framed(*tokenizer_, ids);
      if (split == "train" && static_cast<int64_t>(ids.size()) > options.max_length) {
        ++skipped.too_long;
        continue;
      }
      for (const auto& tag : sentence.tags) example.tags.push_back(labels_.id(tag, sentence.place));
      words += static_cast<int64_t>(sentence.words.size());
      example.words = std::move(sentence.words);
      part.push_back(std::move(example));
      ids_[split].push_back(std::move(ids));
    }
    if (part.empty())
      throw Error("task.max_length: every training sentence has more than " + std::to_string(options.max_length) +
                  " tokens");
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.size()));
    report_[split] = {{"sentences", part.size()}, {"words", words}};
  }
  report_["skipped"] = skipped.too_long;
  report_["tags"] = labels_.size();
  report_["tokenizer"] = tokenizer_->size();
  summary_ = counts + " sentences, " + std::to_string(labels_.size()) + " tags; " + options.tokenizer.type + " " +
             with_commas(tokenizer_->size()) + "; " + skipped.text();
}

TokenBatch Tagging::collect(const std::string& split, const std::vector<int64_t>& examples,
                            torch::Device device) const {
  const auto& part = part_of(parts_, split);
  auto batch = read(split, examples, device);
  const auto T = batch.inputs.target_BT.size(1);
  std::vector<int64_t> targets, rows;
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const auto& example = part[static_cast<std::size_t>(examples[b])];
    targets.insert(targets.end(), example.tags.begin(), example.tags.end());
    for (const auto first : example.first) rows.push_back(static_cast<int64_t>(b) * T + first);
  }
  batch.tokens = static_cast<int64_t>(targets.size());
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  batch.rows_N = torch::tensor(rows, torch::kLong).to(device);
  return batch;
}

Evaluation Tagging::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(parts_, options.split);
  const auto metrics = wanted_metrics(*this, options);
  TokenTotals totals;
  std::map<int64_t, std::vector<std::string>> predicted_of;  // by example
  for_each_batch(model, *this, options, with, [&](const TokenBatch& batch, const Tensor& logits) {
    totals.add(batch, logits);
    const auto best = logits.argmax(-1).cpu();
    const auto* at = best.data_ptr<int64_t>();
    for (const auto example : batch.examples) {
      auto& tags = predicted_of[example];
      for (std::size_t i = 0; i < part[static_cast<std::size_t>(example)].tags.size(); ++i)
        tags.push_back(labels_.name(*at++));
    }
  });
  Evaluation result;
  std::vector<std::vector<std::string>> gold, predicted;
  int64_t right = 0, found = 0, there = 0;  // words with a tag that is not O
  for (const auto& [number, tags] : predicted_of) {
    const auto& example = part[static_cast<std::size_t>(number)];
    auto& expected = gold.emplace_back();
    for (const auto tag : example.tags) expected.push_back(labels_.name(tag));
    predicted.push_back(tags);
    Sample sample;
    for (std::size_t i = 0; i < tags.size(); ++i) {
      right += tags[i] == expected[i] && tags[i] != "O";
      found += tags[i] != "O";
      there += expected[i] != "O";
      const auto* space = i == 0 ? "" : " ";
      sample.source += space + example.words[i];
      sample.reference += space + expected[i];
      sample.hypothesis += space + tags[i];
    }
    result.hypotheses.push_back(sample.hypothesis);
    if (static_cast<int64_t>(result.samples.size()) < options.samples) result.samples.push_back(sample);
  }
  const auto entities = entity_f1(gold, predicted);
  const std::map<std::string, double> all{{"loss", totals.loss()},
                                          {"accuracy", totals.accuracy()},
                                          {"token_f1", f1_score(right, found, there).f1},
                                          {"entity_precision", entities.precision},
                                          {"entity_recall", entities.recall},
                                          {"entity_f1", entities.f1}};
  for (const auto& metric : metrics) result.metrics[metric] = all.at(metric);
  if (result.metrics.count("entity_f1"))
    result.signatures["entity_f1"] = "entities as conlleval|exact type and ends|words:" + std::to_string(totals.tokens);
  return result;
}

}  // namespace headlab
