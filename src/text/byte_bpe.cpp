#include "src/text/byte_bpe.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "src/text/lines.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

#include "src/text/byte_bpe_table.inc"

constexpr const char* end_of_text = "<|endoftext|>";

/// How GPT-2 writes each byte: printable ones of Latin-1 as they are, the others as the code points from 256 on.
std::vector<std::string> written_bytes() {
  std::vector<std::string> written;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    written.push_back(encode_utf8(std::u32string(1, printable ? byte : next++)));
  }
  return written;
}

enum class CharacterKind { letter, number, space, other };

CharacterKind character_kind(char32_t c) {
  if (within(letters, c)) return CharacterKind::letter;
  if (within(numbers, c)) return CharacterKind::number;
  return is_space(c) && !(c >= 0x1C && c <= 0x1F)
             ? CharacterKind::space
             : CharacterKind::other;  // those four are spaces to Python's str alone
}

}  // namespace

std::vector<std::u32string> gpt2_chunks(std::u32string_view text) {
  std::vector<std::u32string> chunks;
  std::size_t at = 0;
  const auto take = [&](std::size_t count) {
    chunks.emplace_back(text.substr(at, count));
    at += count;
  };
  const auto run = [&](std::size_t from, CharacterKind kind) {
    std::size_t end = from;
    while (end < text.size() && character_kind(text[end]) == kind) ++end;
    return end - from;
  };
  constexpr std::u32string_view contractions[] = {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"};
  while (at < text.size()) {
    const auto* contraction = std::find_if(std::begin(contractions), std::end(contractions),
                                           [&](auto each) { return text.substr(at, each.size()) == each; });
    if (contraction != std::end(contractions)) {
      take(contraction->size());
      continue;
    }
    const std::size_t space = text[at] == U' ' && at + 1 < text.size() ? 1 : 0;
    if (const auto kind = character_kind(text[at + space]); kind != CharacterKind::space) {
      take(space + run(at + space, kind));
      continue;
    }
    const auto spaces = run(at, CharacterKind::space);
    take(spaces > 1 && at + spaces < text.size() ? spaces - 1 : spaces);
  }
  return chunks;
}

ByteBpe::ByteBpe(std::vector<std::string> vocabulary, std::vector<std::string> merges, const std::string& where)
    : vocabulary_(std::move(vocabulary)) {
  for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
    if (!valid_utf8(vocabulary_[i])) throw FileError(where + ": piece " + std::to_string(i) + ": expected UTF-8");
    if (!ids_.emplace(vocabulary_[i], static_cast<int64_t>(i)).second)
      throw FileError(where + ": expected each piece once, got " + in_quotes(vocabulary_[i]) + " again at " +
                      std::to_string(i));
  }
  const auto written = written_bytes();
  std::unordered_map<std::string, char> byte_of;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(written[byte]);
    if (found == ids_.end())
      throw FileError(where + ": not a byte-level vocabulary: expected a piece for each byte, got none for byte " +
                      std::to_string(byte) + ", which is written " + in_quotes(written[byte]));
    byte_ids_[byte] = found->second;
    byte_of[written[byte]] = static_cast<char>(byte);
  }
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& merge = merges[rank];
    const auto space = merge.find(' ');
    const auto find = [&](const std::string& piece) {
      const auto found = ids_.find(piece);
      if (space == std::string::npos || found == ids_.end())
        throw FileError(where + ": merge " + std::to_string(rank + 1) +
                        ": expected two pieces of the vocabulary that make a third, got " + in_quotes(merge));
      return found->second;
    };
    const auto first = merge.substr(0, space), second = space == std::string::npos ? "" : merge.substr(space + 1);
    merges_.emplace(std::pair(find(first), find(second)), Merge{static_cast<int64_t>(rank), find(first + second)});
  }
  bytes_ =
      nlohmann::ordered_json{{"tokenizer", "byte_bpe"}, {"format", 1}, {"vocabulary", vocabulary_}, {"merges", merges}}
          .dump();
  const auto own_or_appended = [this](const char* piece) {
    const auto [found, is_new] = ids_.emplace(piece, static_cast<int64_t>(vocabulary_.size()));
    if (is_new) vocabulary_.emplace_back(piece);
    return found->second;
  };
  bos_ = eos_ = own_or_appended(end_of_text);
  pad_ = own_or_appended("<pad>");
  unk_ = own_or_appended("<unk>");
  size_ = static_cast<int64_t>(vocabulary_.size());
  for (const auto& piece : vocabulary_) {
    auto& text = text_of_.emplace_back();
    for (const char32_t c : decode_utf8(piece)) {
      const auto found = byte_of.find(encode_utf8(std::u32string(1, c)));
      if (found != byte_of.end()) text += found->second;
    }
  }
  for (const auto id : {bos_, pad_, unk_}) text_of_[static_cast<std::size_t>(id)].clear();
}

void ByteBpe::append(std::string_view chunk, std::vector<int64_t>& ids) const {
  std::vector<int64_t> pieces;
  for (const char byte : chunk) pieces.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  while (pieces.size() > 1) {
    const Merge* best = nullptr;
    std::pair<int64_t, int64_t> pair;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto found = merges_.find({pieces[i], pieces[i + 1]});
      if (found == merges_.end() || (best && found->second.rank >= best->rank)) continue;
      best = &found->second;
      pair = found->first;
    }
    if (!best) break;
    std::vector<int64_t> joined;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool here = i + 1 < pieces.size() && pieces[i] == pair.first && pieces[i + 1] == pair.second;
      joined.push_back(here ? best->joined : pieces[i]);
      i += here;
    }
    pieces = std::move(joined);
  }
  ids.insert(ids.end(), pieces.begin(), pieces.end());
}

std::vector<int64_t> ByteBpe::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const auto& chunk : gpt2_chunks(decode_utf8(text))) append(encode_utf8(chunk), ids);
  return ids;
}

std::string ByteBpe::decode(const std::vector<int64_t>& ids) const {
  std::string bytes;
  for (const auto id : ids) bytes += text_of_[static_cast<std::size_t>(id)];
  return valid_utf8(bytes) ? bytes : encode_utf8(decode_utf8(bytes));
}

std::vector<std::string> ByteBpe::pieces(std::string_view text) const {
  std::vector<std::string> result;
  for (const auto id : encode(text)) result.push_back(piece(id));
  return result;
}

int64_t ByteBpe::id(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  return found == ids_.end() ? unk_ : found->second;
}

std::shared_ptr<const ByteBpe> byte_bpe_from_json(const std::string& bytes, const std::string& where) {
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  const auto is_list = [&](const char* key) {
    return json.contains(key) && json.at(key).is_array() &&
           std::all_of(json.at(key).begin(), json.at(key).end(), [](const auto& item) { return item.is_string(); });
  };
  const bool fits = json.is_object() && json.value("tokenizer", nlohmann::json()) == "byte_bpe" &&
                    json.value("format", nlohmann::json()).is_number_integer() && is_list("vocabulary") &&
                    is_list("merges");
  if (!fits) throw FileError(where + ": not a byte-level tokenizer as headlab writes it");
  if (json.at("format") > 1)
    throw FileError(where + ": a byte-level tokenizer in format " + json.at("format").dump() +
                    "; this headlab reads format 1: update headlab");
  return std::make_shared<ByteBpe>(json.at("vocabulary").get<std::vector<std::string>>(),
                                   json.at("merges").get<std::vector<std::string>>(), where);
}

std::shared_ptr<const ByteBpe> load_byte_bpe(const std::string& path) {
  const auto json = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!json.is_object() || json.empty())
    throw FileError(path + ": expected a JSON object {\"piece\": id}, as in GPT-2's encoder.json");
  std::vector<std::string> vocabulary(json.size());
  std::vector<bool> seen(json.size(), false);
  for (const auto& [piece, id] : json.items()) {
    const auto place = id.is_number_unsigned() ? id.get<uint64_t>() : std::numeric_limits<uint64_t>::max();
    if (place >= vocabulary.size() || seen[place])
      throw FileError(path + ": " + in_quotes(piece) + ": expected the ids 0 to " +
                      std::to_string(vocabulary.size() - 1) + ", each once, got " + id.dump());
    vocabulary[place] = piece;
    seen[place] = true;
  }
  const auto folder = std::filesystem::path(path).parent_path();
  for (const char* name : {"vocab.bpe", "merges.txt"}) {
    const auto file = folder / name;
    if (!std::filesystem::exists(file)) continue;
    auto lines = read_lines(file.string());
    if (!lines.empty() && lines.front().rfind("#version", 0) == 0) lines.erase(lines.begin());
    std::erase_if(lines, [](const auto& line) { return line.empty(); });
    return std::make_shared<ByteBpe>(std::move(vocabulary), std::move(lines), file.string());
  }
  throw FileError(path + ": expected its merges beside it, as vocab.bpe or merges.txt, got neither");
}

}  // namespace headlab
