#include "src/text/tokenizer.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "modules/base/random.h"
#include "src/text/byte_bpe.h"
#include "src/text/lines.h"
#include "src/text/sentence_piece.h"
#include "src/text/word_piece.h"

namespace headlab {
namespace {

/// The usable lines in their order, or `max_sentences` of them drawn with the seed.
std::vector<const std::string*> choose(const std::vector<std::string>& lines, int64_t max_sentences, uint64_t seed) {
  std::vector<const std::string*> usable;
  for (const std::string& line : lines) {
    if (line_fault(line) == LineFault::none) usable.push_back(&line);
  }
  const auto count = static_cast<int64_t>(usable.size());
  if (max_sentences == 0 || count <= max_sentences) return usable;
  std::vector<int64_t> kept = Random(seed).sample(count, max_sentences);
  std::sort(kept.begin(), kept.end());
  std::vector<const std::string*> chosen;
  for (const int64_t i : kept) chosen.push_back(usable[static_cast<std::size_t>(i)]);
  return chosen;
}

std::string slurp(const std::string& path) {
  LineReader check(path);  // the same errors as for text: missing, a folder, not readable
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The kinds that are saved as JSON, and read from a vocabulary of their own.
struct Kind {
  const char* name;
  std::shared_ptr<const TokenizerModel> (*from_json)(const std::string& bytes, const std::string& where);
  std::shared_ptr<const TokenizerModel> (*load)(const std::string& path, const TokenizerOptions& options);
};
const std::vector<Kind>& kinds() {
  using Model = std::shared_ptr<const TokenizerModel>;
  static const std::vector<Kind> all{
      {"wordpiece",
       [](const std::string& bytes, const std::string& where) -> Model { return word_piece_from_json(bytes, where); },
       [](const std::string& path, const TokenizerOptions& options) -> Model {
         return load_word_piece(path, options.lower_case);
       }},
      {"byte_bpe",
       [](const std::string& bytes, const std::string& where) -> Model { return byte_bpe_from_json(bytes, where); },
       [](const std::string& path, const TokenizerOptions&) -> Model { return load_byte_bpe(path); }}};
  return all;
}

const Kind* kind_of(const std::string& name) {
  for (const Kind& kind : kinds()) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

/// The kind whose JSON these bytes are, or nullptr. (A SentencePiece protocol buffer never begins with a brace.)
const Kind* saved_kind(const std::string& bytes) {
  if (bytes.rfind('{', 0) != 0) return nullptr;
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  const auto name = json.is_object() ? json.find("tokenizer") : json.end();
  return name != json.end() && name->is_string() ? kind_of(name->get<std::string>()) : nullptr;
}

std::shared_ptr<const TokenizerModel> from(std::string bytes, const std::string& where) {
  if (const Kind* kind = saved_kind(bytes)) return kind->from_json(bytes, where);
  return sentence_piece_from_bytes(std::move(bytes), where);
}

}  // namespace

void TokenizerOptions::describe(Fields& fields) {
  fields
      .add("type", type,
           "what a piece is: of SentencePiece unigram, bpe, word or char; wordpiece as BERT has it; byte_bpe as "
           "GPT-2 has it")
      .one_of({"unigram", "bpe", "word", "char", "wordpiece", "byte_bpe"});
  fields
      .add("vocabulary", vocabulary, "pieces of the model, the four special ones included; a maximum for word and char")
      .at_least(5)
      .unit("pieces");
  fields.add("joint", joint, "one model for source and target");
  fields
      .add("model", model,
           "SentencePiece model to load for both sides; for wordpiece a vocab.txt, for byte_bpe an encoder.json with "
           "its vocab.bpe beside it")
      .file()
      .means("absent: train");
  fields.add("source_model", source_model, "model to load for the source").file().means("absent: train");
  fields.add("target_model", target_model, "model to load for the target").file().means("absent: train");
  fields
      .add("normalization", normalization,
           "what is done to characters first; nmt_nfkc is NFKC, and also drops "
           "control characters and turns every white space into a space; wordpiece and byte_bpe have their own")
      .one_of({"nmt_nfkc", "nfkc", "identity"});
  fields
      .add("character_coverage", character_coverage,
           "share of the text's characters that get a piece; 0.9995 suits "
           "scripts with thousands of characters")
      .at_least(0.98)
      .at_most(1);
  fields.add("byte_fallback", byte_fallback, "unknown characters become their bytes (256 more pieces) instead of unk");
  fields.add("lower_case", lower_case, "fold case before all else; with wordpiece also drop accents");
  fields.add("max_sentences", max_sentences, "sentences drawn at random to train on")
      .at_least(0)
      .unit("sentences")
      .means("0: all");
}

void TokenizerOptions::rules(Problems& problems) const {
  if (model && (source_model || target_model)) {
    problems.add("model", "give either model (for both sides) or source_model and target_model");
  }
  if (source_model && !target_model) problems.add("source_model", "expected target_model beside it");
  if (target_model && !source_model) problems.add("target_model", "expected source_model beside it");
  if (type == "byte_bpe" && !model && !source_model) {
    problems.add("type",
                 "byte_bpe is loaded, not trained: name its vocabulary as model, or use bpe with byte_fallback");
  }
  if (type == "byte_bpe" && lower_case)
    problems.add("lower_case", "byte_bpe keeps every byte of the text; leave it out");
  if (lower_case && normalization == "identity" && type != "wordpiece") {
    problems.add("lower_case", "expected normalization \"nmt_nfkc\" or \"nfkc\", which fold case; got \"identity\"");
  }
  if (byte_fallback && type != "unigram" && type != "bpe") {
    problems.add("byte_fallback", "expected type \"unigram\" or \"bpe\", got " + in_quotes(type));
  }
  if (byte_fallback && vocabulary <= 260) {
    problems.add("vocabulary",
                 "expected more than 260 (256 bytes and 4 special pieces), got " + std::to_string(vocabulary));
  }
}

Tokenizer Tokenizer::train(const std::vector<std::string>& lines, const TokenizerOptions& options, uint64_t seed) {
  std::vector<const std::string*> chosen = choose(lines, options.max_sentences, seed);
  if (chosen.empty())
    throw Error("training the tokenizer: expected text, got " + std::to_string(lines.size()) +
                " lines of which none is usable");
  if (options.type == "byte_bpe")
    throw UsageError("tokenizer: byte_bpe is loaded, not trained; name its vocabulary as model");
  if (options.type == "wordpiece")
    return Tokenizer(std::make_shared<WordPiece>(train_word_piece(chosen, options), options.lower_case, "tokenizer"));
  return from_bytes(train_sentence_piece(std::move(chosen), options));
}

Tokenizer Tokenizer::load(const std::string& path) { return Tokenizer(from(slurp(path), path)); }

Tokenizer Tokenizer::load(const std::string& path, const TokenizerOptions& options) {
  const Kind* kind = kind_of(options.type);
  if (!kind) return load(path);
  auto bytes = slurp(path);
  return Tokenizer(saved_kind(bytes) ? from(std::move(bytes), path) : kind->load(path, options));
}

Tokenizer Tokenizer::from_bytes(std::string_view serialized) {
  return Tokenizer(from(std::string(serialized), "tokenizer"));
}

std::string Tokenizer::kind() const { return model_->kind(); }
const std::string& Tokenizer::serialized() const { return model_->serialized(); }
std::vector<int64_t> Tokenizer::encode(std::string_view text) const { return model_->encode(text); }

std::string Tokenizer::decode(const std::vector<int64_t>& ids) const {
  for (const int64_t id : ids) check(id);
  return model_->decode(ids);
}

std::vector<std::string> Tokenizer::pieces(std::string_view text) const { return model_->pieces(text); }

int64_t Tokenizer::size() const { return model_->size(); }

std::string Tokenizer::piece(int64_t id) const {
  check(id);
  return model_->piece(id);
}

int64_t Tokenizer::id(std::string_view piece) const { return model_->id(piece); }

int64_t Tokenizer::pad_id() const { return model_->pad(); }
int64_t Tokenizer::unk_id() const { return model_->unk(); }
int64_t Tokenizer::bos_id() const { return model_->bos(); }
int64_t Tokenizer::eos_id() const { return model_->eos(); }

void Tokenizer::check(int64_t id) const {
  if (id < 0 || id >= size())
    throw Error("token id " + std::to_string(id) + ": expected 0 to " + std::to_string(size() - 1));
}

}  // namespace headlab
