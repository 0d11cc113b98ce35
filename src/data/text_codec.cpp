#include "src/data/text_codec.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "src/terminal/format.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

constexpr int64_t own_pad = 0, own_unk = 1, own_bos = 2, own_eos = 3, own_first = 4;
const char* pieces_file = "tokenizer.model";
const char* characters_file = "characters.model";

class PiecesCodec : public TextCodec {
 public:
  PiecesCodec(Tokenizer tokenizer, std::string type) : tokenizer_(std::move(tokenizer)), type_(std::move(type)) {}

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    for (std::size_t start = 0; start < text.size();) {
      const auto end = std::min(text.find('\n', start), text.size());
      const auto line = tokenizer_.encode(text.substr(start, end - start));
      ids.insert(ids.end(), line.begin(), line.end());
      if (end < text.size()) ids.push_back(tokenizer_.eos_id());
      start = end + 1;
    }
    return ids;
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    std::vector<int64_t> line;
    for (const auto id : ids) {
      if (id != tokenizer_.eos_id()) {
        line.push_back(id);
        continue;
      }
      text += tokenizer_.decode(line) + "\n";
      line.clear();
    }
    return text + tokenizer_.decode(line);
  }

  int64_t size() const override { return tokenizer_.size(); }
  int64_t pad_id() const override { return tokenizer_.pad_id(); }
  int64_t bos_id() const override { return tokenizer_.bos_id(); }
  int64_t eos_id() const override { return tokenizer_.eos_id(); }
  int64_t unk_id() const override { return tokenizer_.unk_id(); }
  std::string summary() const override { return type_ + " " + with_commas(size()); }
  std::map<std::string, std::string> files() const override { return {{pieces_file, tokenizer_.serialized()}}; }

 private:
  Tokenizer tokenizer_;
  std::string type_;
};

class OwnIds : public TextCodec {
 public:
  int64_t pad_id() const override { return own_pad; }
  int64_t bos_id() const override { return own_bos; }
  int64_t eos_id() const override { return own_eos; }
  int64_t unk_id() const override { return own_unk; }
};

class CharactersCodec : public OwnIds {
 public:
  explicit CharactersCodec(std::string_view text) {
    const auto all = decode_utf8(text);
    const std::set<char32_t> distinct(all.begin(), all.end());
    characters_.assign(distinct.begin(), distinct.end());
    for (std::size_t i = 0; i < characters_.size(); ++i) ids_[characters_[i]] = own_first + static_cast<int64_t>(i);
  }

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    for (const auto character : decode_utf8(text)) {
      const auto found = ids_.find(character);
      ids.push_back(found == ids_.end() ? own_unk : found->second);
    }
    return ids;
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::u32string text;
    for (const auto id : ids) {
      if (id == own_unk) text += U'\u2047';
      if (id >= own_first && id < size()) text += characters_[static_cast<std::size_t>(id - own_first)];
    }
    return encode_utf8(text);
  }

  int64_t size() const override { return own_first + static_cast<int64_t>(characters_.size()); }
  std::string summary() const override { return with_commas(static_cast<int64_t>(characters_.size())) + " characters"; }
  std::map<std::string, std::string> files() const override { return {{characters_file, encode_utf8(characters_)}}; }

 private:
  std::u32string characters_;
  std::unordered_map<char32_t, int64_t> ids_;
};

class BytesCodec : public OwnIds {
 public:
  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    for (const char c : text) ids.push_back(own_first + static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (const auto id : ids)
      if (id >= own_first && id < size()) text += static_cast<char>(id - own_first);
    return text;
  }
  int64_t size() const override { return own_first + 256; }
  std::string summary() const override { return "bytes"; }
  std::map<std::string, std::string> files() const override { return {}; }
};

}  // namespace

std::shared_ptr<const TextCodec> pieces_codec(Tokenizer tokenizer, const std::string& type) {
  return std::make_shared<PiecesCodec>(std::move(tokenizer), type);
}
std::shared_ptr<const TextCodec> characters_codec(std::string_view text) {
  return std::make_shared<CharactersCodec>(text);
}
std::shared_ptr<const TextCodec> bytes_codec() { return std::make_shared<BytesCodec>(); }

std::shared_ptr<const TextCodec> codec_from_files(const std::string& units, const std::string& type,
                                                  const std::map<std::string, std::string>& files) {
  if (units == "bytes") return bytes_codec();
  const auto found = files.find(units == "pieces" ? pieces_file : characters_file);
  if (found == files.end()) return nullptr;
  return units == "pieces" ? pieces_codec(Tokenizer::from_bytes(found->second), type) : characters_codec(found->second);
}

}  // namespace headlab
