#include "src/text/sentence_piece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "modules/base/error.h"
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

/// The first number after `words`, of which each must follow the one before; empty where they are not there.
std::string number_after(const std::string& text, const std::vector<std::string>& words) {
  std::size_t at = 0;
  for (const auto& word : words) {
    at = text.find(word, at);
    if (at == std::string::npos) return {};
    at += word.size();
  }
  auto end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return text.substr(at, end - at);
}

/// SentencePiece says in prose what does not fit; its numbers are what the user needs.
[[noreturn]] void refuse(const TokenizerOptions& options, const std::string& reason) {
  const std::string vocabulary = "vocabulary " + std::to_string(options.vocabulary);
  if (const auto most = number_after(reason, {"too high", "<= "}); !most.empty())
    throw Error(vocabulary + " is more than the text supports (max " + most + ")");
  if (const auto least = number_after(reason, {"smaller than required_chars. ", " vs "}); !least.empty())
    throw Error(vocabulary + " is less than the characters of the text need (min " + least +
                "); lower character_coverage leaves out rare characters");
  throw Error("training the tokenizer failed: " + reason);
}

class SentencePiece : public TokenizerModel {
 public:
  SentencePiece(std::string bytes, const std::string& where) : bytes_(std::move(bytes)) {
    share_flags();
    // An empty string is a valid empty model to protobuf; SentencePiece then aborts on first use.
    if (bytes_.empty() || !processor_.LoadFromSerializedProto(bytes_).ok())
      throw FileError(
          where + ": not a SentencePiece model (a vocab.txt or an encoder.json needs its type, wordpiece or byte_bpe)");
    own_ = size_ = processor_.GetPieceSize();
    const auto own_or_appended = [this](int own) { return own >= 0 ? int64_t{own} : size_++; };
    pad_ = own_or_appended(processor_.pad_id());
    bos_ = own_or_appended(processor_.bos_id());
    eos_ = own_or_appended(processor_.eos_id());
    unk_ = processor_.unk_id();
  }

  std::string kind() const override { return "sentencepiece"; }
  const std::string& serialized() const override { return bytes_; }

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    const sp::util::Status status = processor_.Encode({text.data(), text.size()}, &ids);
    if (!status.ok()) throw Error("encoding failed: " + status.ToString());
    return {ids.begin(), ids.end()};
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<int> own;
    own.reserve(ids.size());
    for (const int64_t id : ids)
      if (id < own_) own.push_back(static_cast<int>(id));
    std::string text;
    const sp::util::Status status = processor_.Decode(own, &text);
    if (!status.ok()) throw Error("decoding failed: " + status.ToString());
    return text;
  }

  std::vector<std::string> pieces(std::string_view text) const override {
    std::vector<std::string> result;
    const sp::util::Status status = processor_.Encode({text.data(), text.size()}, &result);
    if (!status.ok()) throw Error("encoding failed: " + status.ToString());
    return result;
  }

  std::string piece(int64_t id) const override {
    if (id < own_) return processor_.IdToPiece(static_cast<int>(id));
    return id == pad_ ? "<pad>" : id == bos_ ? "<s>" : "</s>";
  }

  int64_t id(std::string_view piece) const override { return processor_.PieceToId({piece.data(), piece.size()}); }

 private:
  std::string bytes_;
  sp::SentencePieceProcessor processor_;
  int64_t own_ = 0;  // pieces of the model; those after it were appended
};

}  // namespace

std::shared_ptr<const TokenizerModel> sentence_piece_from_bytes(std::string bytes, const std::string& where) {
  return std::make_shared<SentencePiece>(std::move(bytes), where);
}

std::string train_sentence_piece(std::vector<const std::string*> lines, const TokenizerOptions& options) {
  std::size_t longest = 10;  // the least that SentencePiece takes for a limit
  for (const std::string* line : lines) longest = std::max(longest, line->size());

  const bool at_most = options.type == "word" || options.type == "char";
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.type},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"normalization_rule_name", options.normalization + (options.lower_case ? "_cf" : "")},
      {"hard_vocab_limit", at_most ? "false" : "true"},
      {"pad_id", "0"},
      {"unk_id", "1"},
      {"bos_id", "2"},
      {"eos_id", "3"},
      {"max_sentence_length", std::to_string(longest + 1)},  // longer ones would be left out in silence
      {"num_threads", "1"},  // the sums of unigram training depend on how lines are dealt to threads
      {"minloglevel", "2"},  // no progress on stderr
  };
  Lines iterator(std::move(lines));
  std::string bytes;
  const sp::util::Status status = sp::SentencePieceTrainer::Train(settings, &iterator, &bytes);
  if (!status.ok()) refuse(options, status.ToString());
  return bytes;
}

}  // namespace headlab
