#include "src/text/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <unordered_map>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "src/text/lines.h"
#include "src/text/one_process.h"

namespace headlab {
namespace {

namespace sp = sentencepiece;

/// Hands the chosen lines to the trainer without copying them.
class Lines : public sp::SentenceIterator {
 public:
  explicit Lines(std::vector<const std::string*> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return *lines_[at_]; }
  sp::util::Status status() const override { return {}; }

 private:
  std::vector<const std::string*> lines_;
  std::size_t at_ = 0;
};

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

/// SentencePiece says in prose what does not fit; its numbers are what the user needs.
[[noreturn]] void refuse(const TokenizerOptions& options, const std::string& reason) {
  const std::string vocabulary = "vocabulary " + std::to_string(options.vocabulary);
  std::smatch match;
  if (std::regex_search(reason, match, std::regex("too high.*<= ([0-9]+)"))) {
    throw Error(vocabulary + " is more than the text supports (max " + match[1].str() + ")");
  }
  if (std::regex_search(reason, match, std::regex("smaller than required_chars\\. ([0-9]+) vs ([0-9]+)"))) {
    throw Error(vocabulary + " is less than the characters of the text need (min " + match[2].str() +
                "); lower character_coverage leaves out rare characters");
  }
  throw Error("training the tokenizer failed: " + reason);
}

std::string slurp(const std::string& path) {
  LineReader check(path);  // the same errors as for text: missing, a folder, not readable
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

void TokenizerOptions::describe(Fields& fields) {
  fields.add("type", type, "what a piece is").one_of({"unigram", "bpe", "word", "char"});
  fields
      .add("vocabulary", vocabulary, "pieces of the model, the four special ones included; a maximum for word and char")
      .at_least(5).unit("pieces");
  fields.add("joint", joint, "one model for source and target");
  fields.add("model", model, "SentencePiece model to load for both sides").file().means("absent: train");
  fields.add("source_model", source_model, "SentencePiece model to load for the source").file().means("absent: train");
  fields.add("target_model", target_model, "SentencePiece model to load for the target").file().means("absent: train");
  fields.add("normalization", normalization, "what is done to characters first; nmt_nfkc is NFKC, and also drops "
             "control characters and turns every white space into a space")
      .one_of({"nmt_nfkc", "nfkc", "identity"});
  fields.add("character_coverage", character_coverage, "share of the text's characters that get a piece; 0.9995 suits "
             "scripts with thousands of characters")
      .at_least(0.98).at_most(1);
  fields.add("byte_fallback", byte_fallback, "unknown characters become their bytes (256 more pieces) instead of unk");
  fields.add("lower_case", lower_case, "fold case before all else");
  fields.add("max_sentences", max_sentences, "sentences drawn at random to train on").at_least(0).unit("sentences")
      .means("0: all");
}

void TokenizerOptions::rules(Problems& problems) const {
  if (model && (source_model || target_model)) {
    problems.add("model", "give either model (for both sides) or source_model and target_model");
  }
  if (source_model && !target_model) problems.add("source_model", "expected target_model beside it");
  if (target_model && !source_model) problems.add("target_model", "expected source_model beside it");
  if (lower_case && normalization == "identity") {
    problems.add("lower_case", "expected normalization \"nmt_nfkc\" or \"nfkc\", which fold case; got \"identity\"");
  }
  if (byte_fallback && (type == "word" || type == "char")) {
    problems.add("byte_fallback", "expected type \"unigram\" or \"bpe\", got \"" + type + "\"");
  }
  if (byte_fallback && vocabulary <= 260) {
    problems.add("vocabulary", "expected more than 260 (256 bytes and 4 special pieces), got " +
                                   std::to_string(vocabulary));
  }
}

struct Tokenizer::Impl {
  Impl(std::string serialized, const std::string& where) : bytes(std::move(serialized)) {
    share_flags();
    // An empty string is a valid empty model to protobuf; SentencePiece then aborts on first use.
    if (bytes.empty() || !processor.LoadFromSerializedProto(bytes).ok()) {
      throw FileError(where + ": not a SentencePiece model");
    }
    pieces = size = processor.GetPieceSize();
    const auto own_or_appended = [this](int own) { return own >= 0 ? int64_t{own} : size++; };
    pad = own_or_appended(processor.pad_id());
    bos = own_or_appended(processor.bos_id());
    eos = own_or_appended(processor.eos_id());
    unk = processor.unk_id();
  }

  void check(int64_t id) const {
    if (id < 0 || id >= size) {
      throw Error("token id " + std::to_string(id) + ": expected 0 to " + std::to_string(size - 1));
    }
  }

  std::string bytes;
  sp::SentencePieceProcessor processor;
  int64_t pieces = 0, size = 0, pad = 0, unk = 0, bos = 0, eos = 0;
};

Tokenizer Tokenizer::train(const std::vector<std::string>& lines, const TokenizerOptions& options, uint64_t seed) {
  std::vector<const std::string*> chosen = choose(lines, options.max_sentences, seed);
  if (chosen.empty()) throw Error("training the tokenizer: expected text, got " + std::to_string(lines.size()) +
                                  " lines of which none is usable");
  std::size_t longest = 10;  // the least that SentencePiece takes for a limit
  for (const std::string* line : chosen) longest = std::max(longest, line->size());

  const bool at_most = options.type == "word" || options.type == "char";
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.type},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"normalization_rule_name", options.normalization + (options.lower_case ? "_cf" : "")},
      {"hard_vocab_limit", at_most ? "false" : "true"},
      {"pad_id", "0"}, {"unk_id", "1"}, {"bos_id", "2"}, {"eos_id", "3"},
      {"max_sentence_length", std::to_string(longest + 1)},  // longer ones would be left out in silence
      {"num_threads", "1"},  // the sums of unigram training depend on how lines are dealt to threads
      {"minloglevel", "2"},  // no progress on stderr
  };
  Lines iterator(std::move(chosen));
  std::string bytes;
  const sp::util::Status status = sp::SentencePieceTrainer::Train(settings, &iterator, &bytes);
  if (!status.ok()) refuse(options, status.ToString());
  return from_bytes(bytes);
}

Tokenizer Tokenizer::load(const std::string& path) { return Tokenizer(std::make_shared<Impl>(slurp(path), path)); }

Tokenizer Tokenizer::from_bytes(std::string_view serialized) {
  return Tokenizer(std::make_shared<Impl>(std::string(serialized), "tokenizer"));
}

const std::string& Tokenizer::serialized() const { return impl_->bytes; }

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  const sp::util::Status status = impl_->processor.Encode({text.data(), text.size()}, &ids);
  if (!status.ok()) throw Error("encoding failed: " + status.ToString());
  return {ids.begin(), ids.end()};
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids) const {
  std::vector<int> own;
  own.reserve(ids.size());
  for (const int64_t id : ids) {
    impl_->check(id);
    if (id < impl_->pieces) own.push_back(static_cast<int>(id));
  }
  std::string text;
  const sp::util::Status status = impl_->processor.Decode(own, &text);
  if (!status.ok()) throw Error("decoding failed: " + status.ToString());
  return text;
}

std::vector<std::string> Tokenizer::pieces(std::string_view text) const {
  std::vector<std::string> result;
  const sp::util::Status status = impl_->processor.Encode({text.data(), text.size()}, &result);
  if (!status.ok()) throw Error("encoding failed: " + status.ToString());
  return result;
}

int64_t Tokenizer::size() const { return impl_->size; }

std::string Tokenizer::piece(int64_t id) const {
  impl_->check(id);
  if (id < impl_->pieces) return impl_->processor.IdToPiece(static_cast<int>(id));
  return id == impl_->pad ? "<pad>" : id == impl_->bos ? "<s>" : "</s>";
}

int64_t Tokenizer::id(std::string_view piece) const {
  return impl_->processor.PieceToId({piece.data(), piece.size()});
}

int64_t Tokenizer::pad_id() const { return impl_->pad; }
int64_t Tokenizer::unk_id() const { return impl_->unk; }
int64_t Tokenizer::bos_id() const { return impl_->bos; }
int64_t Tokenizer::eos_id() const { return impl_->eos; }

}  // namespace headlab
