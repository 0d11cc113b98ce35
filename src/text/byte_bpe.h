#pragma once

#include <array>
#include <map>
#include <memory>
#include <unordered_map>

#include "src/text/tokenizer_model.h"

namespace headlab {

/// The byte-level byte-pair encoding of GPT-2 (Radford et al. 2019, section 2.2, and its encoder.py). Text is cut into
///
///   's 't 're 've 'm 'll 'd  |  letters (L*)  |  digits and numbers (N*)  |  other signs  |  white space
///
/// where letters, numbers and signs take one space before them along, and white space before another chunk leaves its
/// last character to it. Each chunk's UTF-8 bytes are then joined, the pair that comes first in the list of merges
/// first, until no pair of the list is left. Nothing is unknown, and decode(encode(text)) is the text, white space
/// included, for every well-formed text; decoding writes U+FFFD for bytes that are none.
///
/// Ids are those of the vocabulary; bos and eos are both its "<|endoftext|>". After its last id come, in this order,
/// <|endoftext|> where it lacks one, "<pad>" and "<unk>", which no text gets.
class ByteBpe : public TokenizerModel {
 public:
  /// `vocabulary`: pieces by id, written as GPT-2 writes bytes; `merges`: "a b", the first joined first.
  /// Throws FileError, which begins with `where`, where a byte or what a merge makes is not in the vocabulary.
  ByteBpe(std::vector<std::string> vocabulary, std::vector<std::string> merges, const std::string& where);

  std::string kind() const override { return "byte_bpe"; }
  /// JSON: {"tokenizer": "byte_bpe", "format": 1, "vocabulary": [...], "merges": [...]}
  const std::string& serialized() const override { return bytes_; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<int64_t>& ids) const override;
  std::vector<std::string> pieces(std::string_view text) const override;
  std::string piece(int64_t id) const override { return vocabulary_[static_cast<std::size_t>(id)]; }
  int64_t id(std::string_view piece) const override;

 private:
  void append(std::string_view chunk, std::vector<int64_t>& ids) const;
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<std::string> text_of_;  // the bytes of each id
  struct Merge {
    int64_t rank, joined;
  };
  std::map<std::pair<int64_t, int64_t>, Merge> merges_;  // by the ids of the pair
  std::array<int64_t, 256> byte_ids_{};
  std::string bytes_;
};

/// What GPT-2's pattern cuts a text into; together they are the text.
std::vector<std::u32string> gpt2_chunks(std::u32string_view text);

/// The inverse of ByteBpe::serialized(); throws FileError, which begins with `where`.
std::shared_ptr<const ByteBpe> byte_bpe_from_json(const std::string& bytes, const std::string& where);

/// Reads a vocabulary {"piece": id} (encoder.json, vocab.json) and the merges that lie beside it as vocab.bpe or
/// merges.txt. Throws FileError.
std::shared_ptr<const ByteBpe> load_byte_bpe(const std::string& path);

}  // namespace headlab
