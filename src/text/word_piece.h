#pragma once

#include <memory>
#include <unordered_map>

#include "src/text/tokenizer.h"
#include "src/text/tokenizer_model.h"

namespace headlab {

/// WordPiece (Schuster and Nakajima 2012; as BERT uses it, 1810.04805): a text's basic tokens (src/text/basic_tokens.h)
/// are cut from the left into the longest pieces that the vocabulary has; pieces that do not begin a word are written
/// with "##". A word for which that fails, or of more than 100 characters, is one "[UNK]".
///
/// Ids are places in the vocabulary. The special pieces are [PAD], [UNK], [CLS] (bos) and [SEP] (eos); [PAD], [CLS] and
/// [SEP] that the vocabulary lacks come after its last piece, in that order. Text that looks like a special piece
/// ("[SEP]") is cut like any other.
///
/// decode(encode(text)) is the basic tokens with one space between them: "the end." comes back as "the end .", and a
/// text that is written so comes back as it was.
class WordPiece : public TokenizerModel {
 public:
  /// Throws FileError, which begins with `where`, for a vocabulary without [UNK], with a piece twice or with one that
  /// is not UTF-8.
  WordPiece(std::vector<std::string> vocabulary, bool lower_case, const std::string& where);

  std::string kind() const override { return "wordpiece"; }
  /// JSON: {"tokenizer": "wordpiece", "format": 1, "lower_case": ..., "vocabulary": [...]}
  const std::string& serialized() const override { return bytes_; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<int64_t>& ids) const override;
  std::vector<std::string> pieces(std::string_view text) const override;
  std::string piece(int64_t id) const override { return vocabulary_[static_cast<std::size_t>(id)]; }
  int64_t id(std::string_view piece) const override;

 private:
  void append(const std::u32string& word, std::vector<int64_t>& ids) const;
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, int64_t> ids_;
  bool lower_case_;
  std::size_t longest_ = 0;  // characters of the longest piece, "##" left out
  std::string bytes_;
};

/// The inverse of WordPiece::serialized(); throws FileError, which begins with `where`.
std::shared_ptr<const WordPiece> word_piece_from_json(const std::string& bytes, const std::string& where);

/// Reads a vocab.txt: a piece a line, its id the number of the line from 0. Throws FileError.
std::shared_ptr<const WordPiece> load_word_piece(const std::string& path, bool lower_case);

/// A vocabulary of `options.vocabulary` pieces for these lines: the four special pieces, the characters of the text (as
/// word beginnings and as "##" continuations; the rarest left out as character_coverage says), and then, one after
/// another, the join of two neighbouring pieces that raises the log-likelihood of the text most, where a piece's
/// probability is its share of all pieces (Schuster and Nakajima 2012, section 3). With f(x) = x log x, counts c of
/// pieces a, b and their join r, n joins and N pieces in all, that is
///
///   f(c_a - n) + f(c_b - n) + f(c_r + n) - f(N - n)  -  f(c_a) - f(c_b) - f(c_r) + f(N)
///
/// Of equal joins the more frequent wins, then the first in byte order. The search looks at every pair for every join,
/// which is meant for up to some hundred thousand different words. Throws Error where the text supports fewer pieces,
/// or needs more, or there is none.
std::vector<std::string> train_word_piece(const std::vector<const std::string*>& lines,
                                          const TokenizerOptions& options);

}  // namespace headlab
