#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// How text becomes ids. Without a model file, SentencePiece models are trained on the training text.
struct TokenizerOptions : Described<TokenizerOptions> {
  std::string type = "bpe";
  int64_t vocabulary = 8000;
  bool joint = true;
  std::optional<std::string> model, source_model, target_model;
  std::string normalization = "nmt_nfkc";
  double character_coverage = 1;
  bool byte_fallback = false;
  bool lower_case = false;
  int64_t max_sentences = 0;

  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

class TokenizerModel;

/// Text to ids and back: a SentencePiece model (Kudo and Richardson, arXiv 1808.06226), a WordPiece vocabulary, or
/// GPT-2's byte-level BPE (src/text/word_piece.h and byte_bpe.h say what those do otherwise). Immutable; copies share
/// it, and any number of threads may use it at once.
///
/// Ids. Trained models have pad 0, unk 1, bos 2, eos 3. A loaded model keeps its own ids; one that lacks pad, bos or
/// eos gets the missing ones appended after its last piece, in that order, so that all four always exist and size()
/// counts them. What the model does not know becomes unk (or bytes, with byte_fallback), never an error; a run of
/// unknown pieces is one unk, and decoding writes it as " \u2047 ".
///
/// decode(encode(text)) is `text` as the model normalises it (nmt_nfkc: NFKC; always: runs of white space become one
/// space, none at the ends), as long as each character is known. U+2581, which SentencePiece uses for the space, comes
/// back as one.
class Tokenizer {
 public:
  /// Trains a model of options.type on `lines`; the same lines, options and seed give the same bytes. The seed matters
  /// only where max_sentences leaves lines out. Word and character models take the vocabulary as a maximum. Throws
  /// Error where a unigram, BPE or WordPiece vocabulary is more or less than the text supports, and where there is no
  /// text; UsageError for type "byte_bpe", which is only loaded.
  static Tokenizer train(const std::vector<std::string>& lines, const TokenizerOptions& options, uint64_t seed);
  /// Reads a SentencePiece .model file, or what serialized() gave. Throws FileError.
  static Tokenizer load(const std::string& path);
  /// The same, and for type "wordpiece" also a vocab.txt, read with options.lower_case; for "byte_bpe" an encoder.json
  /// with its vocab.bpe beside it.
  static Tokenizer load(const std::string& path, const TokenizerOptions& options);
  /// The inverse of serialized(). Throws FileError for bytes that are no tokenizer.
  static Tokenizer from_bytes(std::string_view serialized);

  /// "sentencepiece", "wordpiece" or "byte_bpe".
  std::string kind() const;
  /// The bytes of the .model file: what SentencePiece, in any language, loads; of the others, JSON.
  const std::string& serialized() const;

  /// Ids of a text, without bos and eos. White space alone gives none.
  std::vector<int64_t> encode(std::string_view text) const;
  /// The text of ids; pad, bos, eos and other control ids are skipped. Throws Error for an id outside [0, size()).
  std::string decode(const std::vector<int64_t>& ids) const;
  /// The pieces of a text as the model writes them: "▁the", of a WordPiece "the", "##se".
  std::vector<std::string> pieces(std::string_view text) const;

  int64_t size() const;
  /// The piece of an id, or the id of a piece (unk_id() where there is no such piece). Throws Error for an unknown id.
  std::string piece(int64_t id) const;
  int64_t id(std::string_view piece) const;

  int64_t pad_id() const;
  int64_t unk_id() const;
  int64_t bos_id() const;
  int64_t eos_id() const;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}
  void check(int64_t id) const;
  std::shared_ptr<const TokenizerModel> model_;
};

}  // namespace headlab
