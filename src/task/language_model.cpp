#include "src/task/language_model.h"

#include <algorithm>
#include <cmath>

#include "modules/tensor/torch.h"
#include "src/data/paths.h"
#include "src/data/tokenizers.h"
#include "src/decode/pad.h"
#include "src/task/token_loss.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

struct LoadedText {
  std::map<std::string, PlainText> parts;
  std::string name;
};

LoadedText load_text_files(const Options& options, const std::string& spec_folder) {
  const auto& files = dynamic_cast<const TextFilesOptions&>(options);
  const auto read = [&](const std::string& file, KeepLines keep) {
    return PlainText::read_file(resolve_data_path(file, spec_folder), keep);
  };
  return {{{"train", read(files.train, KeepLines::usable)},
           {"valid", read(files.valid, KeepLines::all)},
           {"test", read(files.test, KeepLines::all)}},
          files.train};
}

LoadedText load_text_file(const Options& options, const std::string& spec_folder) {
  const auto& one = dynamic_cast<const TextFileOptions&>(options);
  auto parts = cut_text(PlainText::read_file(resolve_data_path(one.file, spec_folder), KeepLines::usable), one.valid,
                        one.test, one.cut);
  return {{{"train", std::move(parts.train)}, {"valid", std::move(parts.valid)}, {"test", std::move(parts.test)}},
          one.file};
}

LoadedText load_grammar_text(const Options& options, const std::string&) {
  const auto& own = dynamic_cast<const GrammarTextOptions&>(options);
  LoadedText loaded{{}, "grammar " + own.language};
  for (const auto& split : grammar::generate(own.grammar).splits) {
    auto& part = loaded.parts[split.name];
    for (const auto& example : split.examples)
      part.lines.push_back(own.language == "en" ? example.source : example.target);
    part.read = static_cast<int64_t>(part.lines.size());
  }
  return loaded;
}

// Where plain text comes from: one line an entry.
struct PlainTextSource {
  EntryInfo info;
  LoadedText (*load)(const Options&, const std::string& spec_folder);
};
const std::vector<PlainTextSource>& plain_text_sources() {
  static const std::vector<PlainTextSource> all{
      {{"grammar", "sentences of headlab's own grammar, one a line", "",
        [] { return std::make_shared<GrammarTextOptions>(); }},
       load_grammar_text},
      {{"files", "three text files", "", [] { return std::make_shared<TextFilesOptions>(); }}, load_text_files},
      {{"file", "one text file, cut into train, valid and test", "",
        [] { return std::make_shared<TextFileOptions>(); }},
       load_text_file}};
  return all;
}

}  // namespace

const Catalogue& plain_text_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made{"text", "where plain text comes from", {}};
    for (const auto& source : plain_text_sources()) made.entries.push_back(source.info);
    return made;
  }();
  return catalogue;
}

void TextFilesOptions::describe(Fields& fields) {
  fields.add("train", train, "file, looked for beside the spec and in HEADLAB_DATA").required().file();
  fields.add("valid", valid, "for validation during training").required().file();
  fields.add("test", test, "for the final evaluation").required().file();
}

void TextFileOptions::describe(Fields& fields) {
  fields.add("file", file, "file, looked for beside the spec and in HEADLAB_DATA").required().file();
  fields.add("valid", valid, "share of the characters, after those to train on").above(0).below(1);
  fields.add("test", test, "share of the characters, at the end").above(0).below(1);
  fields.add("cut", cut, "where the parts may meet: between lines, or anywhere").one_of({"line", "character"});
}

void TextFileOptions::rules(Problems& problems) const {
  if (valid + test >= 1)
    problems.add("valid", "expected valid and test below 1 together, so that something is left to train on");
}

void GrammarTextOptions::describe(Fields& fields) {
  fields.add("language", language, "which side of the pairs").one_of({"en", "de"});
  grammar.describe(fields);
}

void LanguageModelOptions::describe(Fields& fields) {
  fields.add("data", data, "where the text comes from");
  fields
      .add("units", units,
           "what a token is: a piece of the tokenizer, a character, or a byte of the UTF-8 text; the last two "
           "keep white space and line ends as they are and need no tokenizer")
      .one_of({"pieces", "characters", "bytes"});
  fields.add("tokenizer", tokenizer, "how lines become pieces");
  fields.add("block", block, "tokens of a window").at_least(1).unit("tokens");
  fields
      .add("train_stride", train_stride,
           "tokens between the starts of training windows; 1: a window may start anywhere")
      .at_least(1)
      .unit("tokens")
      .means("absent: block");
  fields.add("stride", stride, "tokens scored in an evaluation window; the others come before them, unscored")
      .at_least(1)
      .unit("tokens")
      .means("absent: block");
  describe_roles(fields);
}

void LanguageModelOptions::rules(Problems& problems) const {
  const auto at_most_block = [&](const char* field, const std::optional<int64_t>& value) {
    if (value && *value > block)
      problems.add(field, "expected at most block (" + std::to_string(block) + "), got " + std::to_string(*value));
  };
  at_most_block("train_stride", train_stride);
  at_most_block("stride", stride);
  if (units == "pieces" && (tokenizer.source_model || tokenizer.target_model))
    problems.add("tokenizer.source_model", "expected model: a language model has one text");
}

MetricNames LanguageModelOptions::metrics() const {
  return {{"loss", "perplexity", "accuracy", "word_perplexity", "bits_per_character"},
          {"loss", "perplexity", "accuracy"}};
}

void LanguageModelOptions::model_rules(const Choice& model, Problems& problems) const {
  expect_model("language_model", model, {{"decoder_only", "language_model"}}, problems);
}

LanguageModel::LanguageModel(const LanguageModelOptions& options, const TaskContext& context)
    : block_(options.block), stride_(options.stride.value_or(options.block)) {
  codec_ = codec_from_files(options.units, options.tokenizer.type, context.files);
  if (codec_ && !context.reads_data) return;
  LoadedText loaded;
  for (const auto& source : plain_text_sources())
    if (source.info.name == options.data.type()) loaded = source.load(options.data.options(), context.spec_folder);
  const auto& train = loaded.parts.at("train");
  if (!codec_ && options.units == "characters") codec_ = characters_codec(train.text());
  if (!codec_) {
    auto own = options.tokenizer;
    own.joint = true;
    codec_ = pieces_codec(make_tokenizers(own, train.lines, {}, context.spec_folder, context.seed).source, own.type);
  }
  std::string counts;
  for (const auto& split : split_names()) {
    const auto& text = loaded.parts.at(split);
    auto& part = parts_[split];
    const auto ids = codec_->encode(text.text());
    part.stream.assign(ids.begin(), ids.end());
    const auto tokens = static_cast<int64_t>(ids.size());
    if (tokens == 0) throw Error(loaded.name + ": the " + split + " text gives no token");
    const bool training = split == "train";
    part.windows = windows_of(tokens, block_, training ? options.train_stride.value_or(block_) : stride_, training);
    part.words = text.words_and_line_ends();
    part.characters = text.characters();
    part.lines = static_cast<int64_t>(text.lines.size());
    part.unknown = std::count(ids.begin(), ids.end(), codec_->unk_id());
    counts += (counts.empty() ? "" : " / ") + with_commas(tokens);
    report_[split] = {{"tokens", tokens},
                      {"windows", part.windows.size()},
                      {"lines", part.lines},
                      {"words_and_line_ends", part.words},
                      {"characters", part.characters},
                      {"unknown", part.unknown},
                      {"skipped", text.skipped()}};
  }
  summary_ = loaded.name + ": " + counts + " tokens; " + codec_->summary() + "; " + with_commas(train.skipped()) +
             (train.skipped() == 1 ? " line" : " lines") + " skipped";
  report_["vocabulary"] = codec_->size();
}

// Training: windows every `stride` tokens, all of each scored. Evaluation: each token is scored in the first window
// that reaches it.
std::vector<LanguageModel::Window> LanguageModel::windows_of(int64_t tokens, int64_t block, int64_t stride,
                                                             bool score_all) {
  std::vector<Window> windows;
  int64_t seen = 0;
  for (int64_t start = 0; seen < tokens; start += stride) {
    const auto length = std::min(block, tokens - start);
    windows.push_back({start, length, score_all ? length : start + length - seen});
    seen = start + length;
  }
  return windows;
}

ModelContext LanguageModel::context() const {
  ModelContext context;
  context.target_vocabulary = codec_->size();
  return context;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> LanguageModel::lengths(const std::string& split) const {
  std::vector<int64_t> lengths;
  for (const auto& window : part_of(parts_, split).windows) lengths.push_back(window.length);
  return {{}, lengths};
}

TokenBatch LanguageModel::collect(const std::string& split, const std::vector<int64_t>& examples,
                                  torch::Device device) const {
  const auto& part = part_of(parts_, split);
  std::vector<std::vector<int64_t>> inputs;
  std::vector<int64_t> targets;
  int64_t longest = 0;
  bool all = true;
  for (const auto example : examples) {
    const auto& window = part.windows[static_cast<std::size_t>(example)];
    const auto* tokens = part.stream.data() + window.start;
    auto& input = inputs.emplace_back();
    input.push_back(codec_->bos_id());
    input.insert(input.end(), tokens, tokens + window.length - 1);
    targets.insert(targets.end(), tokens + window.length - window.scored, tokens + window.length);
    longest = std::max(longest, window.length);
    all = all && window.scored == window.length;
  }
  TokenBatch batch;
  batch.examples = examples;
  batch.tokens = static_cast<int64_t>(targets.size());
  std::tie(batch.inputs.target_BT, batch.inputs.target_mask_BT) = pad_right(inputs, codec_->pad_id(), device);
  batch.targets_N = torch::tensor(targets, torch::kLong).to(device);
  if (!all || batch.inputs.target_mask_BT.defined()) {
    std::vector<int64_t> rows;
    for (std::size_t b = 0; b < examples.size(); ++b) {
      const auto& window = part.windows[static_cast<std::size_t>(examples[b])];
      for (auto t = window.length - window.scored; t < window.length; ++t)
        rows.push_back(static_cast<int64_t>(b) * longest + t);
    }
    batch.rows_N = torch::tensor(rows, torch::kLong).to(device);
  }
  return batch;
}

Evaluation LanguageModel::evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const {
  const auto& part = part_of(parts_, options.split);
  const auto metrics = wanted_metrics(*this, options);
  const bool whole = options.limit == 0 || options.limit >= static_cast<int64_t>(part.windows.size());
  for (const auto& metric : metrics)
    if (!whole && (metric == "word_perplexity" || metric == "bits_per_character"))
      throw UsageError("evaluate.limit: " + metric +
                       " is of a whole text, whose words and characters are known; expected no limit, got " +
                       std::to_string(options.limit) + " (loss and perplexity can have one)");
  const auto totals = token_totals(model, *this, options, with);
  Evaluation result;
  const std::string how = "|unit:" + codec_->summary() + "|unknown:" + std::to_string(part.unknown) +
                          "|block:" + std::to_string(block_) + "|stride:" + std::to_string(stride_);
  for (const auto& metric : metrics) {
    if (metric == "loss") result.metrics[metric] = totals.loss();
    if (metric == "perplexity") result.metrics[metric] = std::exp(totals.loss());
    if (metric == "accuracy") result.metrics[metric] = totals.accuracy();
    if (metric == "word_perplexity") {
      result.metrics[metric] = std::exp(totals.nll / static_cast<double>(part.words));
      result.signatures[metric] =
          "per:word and line end|count:" + std::to_string(part.words) + "|lines:" + std::to_string(part.lines) + how;
    }
    if (metric == "bits_per_character") {
      result.metrics[metric] = totals.nll / std::log(2.0) / static_cast<double>(part.characters);
      result.signatures[metric] = "per:code point, line ends too|count:" + std::to_string(part.characters) + how;
    }
  }
  return result;
}

}  // namespace headlab
