#include "src/text/word_piece.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/text/basic_tokens.h"
#include "src/text/lines.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

constexpr const char* unknown_piece = "[UNK]";
constexpr std::size_t longest_word = 100;  // characters

bool continues_a_word(const std::string& piece) { return piece.size() > 2 && piece.compare(0, 2, "##") == 0; }

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary, bool lower_case, const std::string& where)
    : vocabulary_(std::move(vocabulary)), lower_case_(lower_case) {
  for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
    const auto& piece = vocabulary_[i];
    if (!valid_utf8(piece))
      throw FileError(where + ": piece " + std::to_string(i) + ": expected UTF-8, got " + in_quotes(piece));
    if (piece.empty()) continue;  // an id that nothing has
    const auto [before, is_new] = ids_.emplace(piece, static_cast<int64_t>(i));
    if (!is_new)
      throw FileError(where + ": expected each piece once, got " + in_quotes(piece) + " at " +
                      std::to_string(before->second) + " and " + std::to_string(i) + " (counted from 0)");
    longest_ = std::max(longest_, decode_utf8(piece).size() - (continues_a_word(piece) ? 2 : 0));
  }
  if (!ids_.count(unknown_piece))
    throw FileError(where + ": not a WordPiece vocabulary: expected a piece \"[UNK]\" among its " +
                    std::to_string(vocabulary_.size()));
  bytes_ =
      nlohmann::ordered_json{
          {"tokenizer", "wordpiece"}, {"format", 1}, {"lower_case", lower_case_}, {"vocabulary", vocabulary_}}
          .dump();
  unk_ = ids_.at(unknown_piece);
  const auto own_or_appended = [this](const char* piece) {
    const auto [found, is_new] = ids_.emplace(piece, static_cast<int64_t>(vocabulary_.size()));
    if (is_new) vocabulary_.emplace_back(piece);
    return found->second;
  };
  pad_ = own_or_appended("[PAD]");
  bos_ = own_or_appended("[CLS]");
  eos_ = own_or_appended("[SEP]");
  size_ = static_cast<int64_t>(vocabulary_.size());
}

void WordPiece::append(const std::u32string& word, std::vector<int64_t>& ids) const {
  const auto before = ids.size();
  std::size_t first = word.size() > longest_word ? std::u32string::npos : 0;
  while (first < word.size()) {
    std::size_t length = std::min(longest_, word.size() - first);
    auto found = ids_.end();
    for (; length > 0 && found == ids_.end(); --length)
      found = ids_.find((first > 0 ? "##" : "") + encode_utf8(std::u32string_view(word).substr(first, length)));
    if (found == ids_.end()) {
      first = std::u32string::npos;
      break;
    }
    ids.push_back(found->second);
    first += length + 1;  // the loop went one on
  }
  if (first != std::u32string::npos) return;
  ids.resize(before);
  ids.push_back(unk_);
}

std::vector<int64_t> WordPiece::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const auto& word : basic_tokens(decode_utf8(text), lower_case_)) append(word, ids);
  return ids;
}

std::string WordPiece::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  for (const auto id : ids) {
    if (id == pad_ || id == bos_ || id == eos_) continue;
    const auto& piece = vocabulary_[static_cast<std::size_t>(id)];
    const bool joins = continues_a_word(piece) && !text.empty();
    if (!joins && !text.empty()) text += ' ';
    text += id == unk_ ? "\u2047" : continues_a_word(piece) ? piece.substr(2) : piece;
  }
  return text;
}

std::vector<std::string> WordPiece::pieces(std::string_view text) const {
  std::vector<std::string> result;
  for (const auto id : encode(text)) result.push_back(piece(id));
  return result;
}

int64_t WordPiece::id(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  return found == ids_.end() ? unk_ : found->second;
}

std::shared_ptr<const WordPiece> word_piece_from_json(const std::string& bytes, const std::string& where) {
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  const auto has = [&](const char* key, auto is) { return json.contains(key) && (json.at(key).*is)(); };
  const bool fits = json.is_object() && json.value("tokenizer", nlohmann::json()) == "wordpiece" &&
                    has("lower_case", &nlohmann::json::is_boolean) &&
                    has("format", &nlohmann::json::is_number_integer) && has("vocabulary", &nlohmann::json::is_array) &&
                    std::all_of(json.at("vocabulary").begin(), json.at("vocabulary").end(),
                                [](const auto& piece) { return piece.is_string(); });
  if (!fits) throw FileError(where + ": not a WordPiece tokenizer as headlab writes it");
  if (json.at("format") > 1)
    throw FileError(where + ": a WordPiece tokenizer in format " + json.at("format").dump() +
                    "; this headlab reads format 1: update headlab");
  return std::make_shared<WordPiece>(json.at("vocabulary").get<std::vector<std::string>>(),
                                     json.at("lower_case").get<bool>(), where);
}

std::shared_ptr<const WordPiece> load_word_piece(const std::string& path, bool lower_case) {
  return std::make_shared<WordPiece>(read_lines(path), lower_case, path);
}

}  // namespace headlab
