#include "src/task/translation.h"

#include <algorithm>
#include <cmath>

#include "modules/model/encoder_decoder.h"
#include "modules/tensor/torch.h"
#include "src/data/batches.h"
#include "src/data/paths.h"
#include "src/decode/translate.h"
#include "src/metrics/bleu.h"
#include "src/metrics/chrf.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

ParallelText from_grammar(const std::vector<grammar::Example>& examples) {
  ParallelText text;
  for (const auto& example : examples) {
    text.line.push_back(static_cast<int64_t>(text.source.size()));
    text.source.push_back(example.source);
    text.target.push_back(example.target);
  }
  text.report.lines = static_cast<int64_t>(text.source.size());
  return text;
}

struct Loaded {
  std::map<std::string, ParallelText> parts;
  std::string name;
  std::map<std::string, std::vector<grammar::GoldSentence>> source_gold;
};

Loaded load_grammar(const Options& options, const std::string&) {
  const auto corpus = grammar::generate(dynamic_cast<const grammar::GrammarOptions&>(options));
  Loaded loaded{{}, "grammar en-de", {}};
  for (const auto& split : corpus.splits) {
    loaded.parts[split.name] = from_grammar(split.examples);
    for (const auto& example : split.examples) loaded.source_gold[split.name].push_back(example.source_gold);
  }
  return loaded;
}

Loaded load_files(const Options& options, const std::string& spec_folder) {
  const auto& files = dynamic_cast<const ParallelFilesOptions&>(options);
  const auto read = [&](const std::string& source, const std::string& target, KeepLines keep) {
    return ParallelText::read(resolve_data_path(source, spec_folder), resolve_data_path(target, spec_folder), keep);
  };
  return {{{"train", read(files.train_source, files.train_target, KeepLines::usable)},
           {"valid", read(files.valid_source, files.valid_target, KeepLines::all)},
           {"test", read(files.test_source, files.test_target, KeepLines::all)}},
          files.train_source + ", " + files.train_target,
          {}};
}

// Where parallel text comes from: one line an entry.
struct Source {
  EntryInfo info;
  Loaded (*load)(const Options&, const std::string& spec_folder);
};
const std::vector<Source>& data_sources() {
  static const std::vector<Source> all{{{"grammar", "English-German sentences of headlab's own grammar", "",
                                         [] { return std::make_shared<grammar::GrammarOptions>(); }},
                                        load_grammar},
                                       {{"files", "text files, line n of one the translation of line n of the other",
                                         "", [] { return std::make_shared<ParallelFilesOptions>(); }},
                                        load_files}};
  return all;
}

/// The words and where their tokens stand among `ids`, by the characters (white space left out) that the ids before
/// each decode to.
AnnotatedText annotated(const std::vector<grammar::GoldToken>& tokens, const std::vector<int64_t>& ids,
                        const Tokenizer& tokenizer) {
  AnnotatedText text;
  std::vector<int64_t> word_of;  // of each character
  const auto letters = [](const std::string& utf8) {
    return std::count_if(utf8.begin(), utf8.end(), [](unsigned char c) { return c != ' ' && (c & 0xC0) != 0x80; });
  };
  for (std::size_t word = 0; word < tokens.size(); ++word) {
    word_of.insert(word_of.end(), static_cast<std::size_t>(letters(tokens[word].form)), static_cast<int64_t>(word));
    text.parent.push_back(tokens[word].head);
    text.relation.push_back(tokens[word].relation);
  }
  text.first.assign(tokens.size(), -1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto before = letters(tokenizer.decode({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i)}));
    const auto after = letters(tokenizer.decode({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i) + 1}));
    // A piece that is a space alone belongs to the word that follows.
    const auto at = std::min<std::size_t>(static_cast<std::size_t>(before), word_of.empty() ? 0 : word_of.size() - 1);
    text.word_at.push_back(word_of.empty() ? -1 : word_of[at]);
    for (auto letter = before;
         letter < std::max(after, before + 1) && letter < static_cast<std::ptrdiff_t>(word_of.size()); ++letter) {
      auto& first = text.first[static_cast<std::size_t>(word_of[static_cast<std::size_t>(letter)])];
      if (first < 0) first = static_cast<int64_t>(i);
    }
  }
  for (auto& first : text.first) first = std::max<int64_t>(first, 0);
  return text;
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

const Catalogue& translation_data_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"data", "where parallel text comes from", {}};
    for (const auto& source : data_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

void ParallelFilesOptions::describe(Fields& fields) {
  fields.add("train_source", train_source, "file, looked for beside the spec and in HEADLAB_DATA").required().file();
  fields.add("train_target", train_target, "its translation").required().file();
  fields.add("valid_source", valid_source, "for validation during training").required().file();
  fields.add("valid_target", valid_target, "its translation").required().file();
  fields.add("test_source", test_source, "for the final evaluation").required().file();
  fields.add("test_target", test_target, "its translation").required().file();
}

void TranslationOptions::describe(Fields& fields) {
  fields.add("data", data, "where the text comes from");
  fields.add("tokenizer", tokenizer, "how text becomes ids");
  fields.add("max_length", max_length, "longer training pairs are skipped").at_least(1).unit("tokens");
  describe_roles(fields);
}

MetricNames TranslationOptions::metrics() const {
  return {{"bleu", "chrf", "loss", "perplexity", "accuracy"}, {"bleu", "chrf", "loss", "perplexity"}};
}

void TranslationOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("translation", model, {{"encoder_decoder", ""}}, problems);
  const auto* translator = dynamic_cast<const EncoderDecoderOptions*>(&model.options());
  if (translator && translator->embedding.tie == "all" &&
      (!tokenizer.joint || tokenizer.source_model || tokenizer.target_model))
    problems.add("model.embedding.tie",
                 "\"all\" shares one vocabulary, but the tokenizers are separate; use \"target\" or \"none\", or a "
                 "joint tokenizer");
}

Translation::Translation(const TranslationOptions& options, const TaskContext& context) {
  if (const auto* joint = context.file("tokenizer.model")) {
    const auto tokenizer = Tokenizer::from_bytes(*joint);
    tokenizers_ = TokenizerPair{tokenizer, tokenizer, true};
  } else if (context.file("source.model") && context.file("target.model")) {
    tokenizers_ = TokenizerPair{Tokenizer::from_bytes(*context.file("source.model")),
                                Tokenizer::from_bytes(*context.file("target.model")), false};
  }
  if (tokenizers_ && !context.reads_data) return;
  Loaded loaded;
  for (const auto& source : data_sources())
    if (source.info.name == options.data.type()) loaded = source.load(options.data.options(), context.spec_folder);
  if (!tokenizers_) {
    const auto& train = loaded.parts.at("train");
    tokenizers_ = make_tokenizers(options.tokenizer, train.source, train.target, context.spec_folder, context.seed);
  }
  std::string counts;
  for (const auto& split : split_names()) {
    auto& part = parts_[split];
    part.text = std::move(loaded.parts.at(split));
    part.source_gold = std::move(loaded.source_gold[split]);
    const bool training = split == "train";
    part.pairs = encode_pairs(part.text, tokenizers_->source, tokenizers_->target, training ? options.max_length : 0,
                              training ? KeepLines::usable : KeepLines::all);
    counts += (counts.empty() ? "" : " / ") + with_commas(static_cast<int64_t>(part.pairs.source.size()));
    int64_t tokens = 0, unknown = 0;  // of the targets
    for (const auto& ids : part.pairs.target) {
      tokens += static_cast<int64_t>(ids.size());
      unknown += std::count(ids.begin(), ids.end(), tokenizers_->target.unk_id());
    }
    report_[split] = {{"pairs", part.pairs.source.size()}, {"tokens", tokens}, {"unknown", unknown}};
    report_[split].update(part.text.report.counts());
  }
  const auto& report = parts_.at("train").text.report;
  summary_ = loaded.name + ": " + counts + " pairs; " + (tokenizers_->joint ? "joint " : "separate ") +
             options.tokenizer.type + " " + with_commas(tokenizers_->target.size()) + "; " + report.text();
  report_["tokenizer"] = {
      {"joint", tokenizers_->joint}, {"source", tokenizers_->source.size()}, {"target", tokenizers_->target.size()}};
}

ModelContext Translation::context() const {
  ModelContext context;
  context.source_vocabulary = tokenizers_->source.size();
  context.target_vocabulary = tokenizers_->target.size();
  return context;
}

int64_t Translation::longest() const {
  int64_t longest = 0;
  for (const auto& part : parts_) {
    const auto [source, target] = lengths(part.first);
    for (auto length : source) longest = std::max(longest, length);
    for (auto length : target) longest = std::max(longest, length);
  }
  return longest;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> Translation::lengths(const std::string& split) const {
  auto source = part_of(parts_, split).pairs.source_lengths(), target = part_of(parts_, split).pairs.target_lengths();
  for (auto* lengths : {&source, &target})
    for (auto& length : *lengths) ++length;  // eos
  return {source, target};
}

TextKind Translation::reads() const { return {text_ids(tokenizers_->source), tokenizers_->joint}; }
TextIds Translation::writes() const { return text_ids(tokenizers_->target); }

TokenBatch Translation::collect(const std::string& split, const std::vector<int64_t>& examples,
                                torch::Device device) const {
  const auto& pairs = part_of(parts_, split).pairs;
  const auto& target_tokenizer = tokenizers_->target;
  std::vector<std::vector<int64_t>> sources, inputs;
  std::vector<int64_t> targets;
  for (auto example : examples) {
    auto& source = sources.emplace_back(pairs.source[example].begin(), pairs.source[example].end());
    source.push_back(tokenizers_->source.eos_id());
    const auto& target = pairs.target[example];
    auto& input = inputs.emplace_back();
    input.push_back(target_tokenizer.bos_id());
    input.insert(input.end(), target.begin(), target.end());
    targets.insert(targets.end(), target.begin(), target.end());
    targets.push_back(target_tokenizer.eos_id());
  }
  TokenBatch batch;
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  std::tie(batch.inputs.source_BS, batch.inputs.source_mask_BS) =
      pad_right(sources, tokenizers_->source.pad_id(), device);
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(inputs, target_tokenizer.pad_id(), device);
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  if (batch.inputs.target_mask_BT.defined()) batch.rows_N = batch.inputs.target_mask_BT.flatten().nonzero().squeeze(-1);
  return batch;
}

Evaluation Translation::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  Evaluation result;
  const auto metrics = wanted_metrics(*this, options);
  const auto wants = [&](const char* metric) {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  };
  if (wants("loss") || wants("perplexity") || wants("accuracy")) {
    const auto totals = token_totals(model, *this, options, with);
    if (wants("loss")) result.metrics["loss"] = totals.loss();
    if (wants("perplexity")) result.metrics["perplexity"] = std::exp(totals.loss());
    if (wants("accuracy")) result.metrics["accuracy"] = totals.accuracy();
  }
  if (!wants("bleu") && !wants("chrf")) return result;

  const auto& here = part_of(parts_, options.split);
  const auto count =
      options.limit > 0 ? std::min<std::size_t>(options.limit, here.pairs.source.size()) : here.pairs.source.size();
  auto sources = this->sources(options.split);
  sources.resize(count);
  Forward run;
  with.enter(run);
  const auto prefix = tokenizers_->target.encode(options.search.prefix);
  const auto found = translate_ids(
      model, sources, text_ids(tokenizers_->source), text_ids(tokenizers_->target), options.search, options.max_tokens,
      run, prefix,
      [&](const std::vector<int64_t>& examples) { return side_of(options.split, examples, model.device()); });
  std::vector<std::string> references;
  for (std::size_t i = 0; i < count; ++i) {
    result.hypotheses.push_back(found[i].empty() ? std::string()
                                                 : tokenizers_->target.decode(joined(prefix, found[i].front().ids)));
    references.push_back(here.text.target[here.pairs.pair[i]]);
  }
  if (wants("bleu")) {
    const Bleu bleu;
    result.metrics["bleu"] = bleu.corpus(result.hypotheses, {references}).score;
    result.signatures["bleu"] = bleu.signature(1);
  }
  if (wants("chrf")) {
    const Chrf chrf;
    result.metrics["chrf"] = chrf.corpus(result.hypotheses, {references}).score;
    result.signatures["chrf"] = chrf.signature(1);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(options.samples, count); ++i)
    result.samples.push_back({here.text.source[here.pairs.pair[i]], references[i], result.hypotheses[i]});
  return result;
}

std::vector<std::vector<std::pair<double, std::string>>> Translation::translate(Model& model,
                                                                                const std::vector<std::string>& lines,
                                                                                const SearchOptions& options,
                                                                                int64_t first) const {
  std::vector<std::vector<int64_t>> sources;
  for (const auto& line : lines) sources.push_back(tokenizers_->source.encode(line));
  Forward run;
  run.rows_B = torch::arange(first, first + static_cast<int64_t>(lines.size()),
                             torch::dtype(torch::kLong).device(model.device()));
  const auto prefix = tokenizers_->target.encode(options.prefix);
  std::vector<std::vector<std::pair<double, std::string>>> all;
  for (const auto& found : translate_ids(model, sources, text_ids(tokenizers_->source), text_ids(tokenizers_->target),
                                         options, 8192, run, prefix)) {
    auto& of_line = all.emplace_back();
    for (const auto& hypothesis : found)
      of_line.emplace_back(hypothesis.score, tokenizers_->target.decode(joined(prefix, hypothesis.ids)));
  }
  return all;
}

std::vector<AnnotatedText> Translation::trees(const std::string& split, int64_t limit) const {
  const auto& part = part_of(parts_, split);
  std::vector<AnnotatedText> all;
  if (part.source_gold.empty()) return all;
  const auto count = limit > 0 ? std::min<std::size_t>(static_cast<std::size_t>(limit), part.pairs.source.size())
                               : part.pairs.source.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& tokens = part.source_gold[static_cast<std::size_t>(part.pairs.pair[i])].tokens;
    const std::vector<int64_t> ids(part.pairs.source[i].begin(), part.pairs.source[i].end());
    all.push_back(annotated(tokens, ids, tokenizers_->source));
    all.back().word_at.push_back(-1);  // the end of the text
  }
  return all;
}

std::vector<std::vector<int64_t>> Translation::sources(const std::string& split) const {
  std::vector<std::vector<int64_t>> all;
  for (const auto& ids : part_of(parts_, split).pairs.source) all.emplace_back(ids.begin(), ids.end());
  return all;
}

std::map<std::string, std::string> Translation::files() const {
  if (tokenizers_->joint) return {{"tokenizer.model", tokenizers_->target.serialized()}};
  return {{"source.model", tokenizers_->source.serialized()}, {"target.model", tokenizers_->target.serialized()}};
}

}  // namespace headlab
