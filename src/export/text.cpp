#include "src/export/text.h"

#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace headlab {
namespace {

using c10::IValue;

// Of sentencepiece_model.proto.
enum PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
enum ModelType { unigram = 1, bpe = 2, word = 3, character = 4 };

struct Piece {
  std::string text;
  float score = 0;
  uint64_t type = normal;
};

struct PieceModel {
  std::vector<Piece> pieces;
  uint64_t type = unigram;
  bool byte_fallback = false, space_as_suffix = false, denormalizes = false;
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::vector<int64_t> trie;  // units of a Darts double array; empty: no rules
  std::string replacements;   // what the trie's values point into
};

/// Calls `field(number, varint, bytes)` for each field of a protocol buffer; fixed 32-bit values come as 4 bytes.
template <class Function>
void each_field(std::string_view message, Function field) {
  std::size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto next = static_cast<unsigned char>(message[at++]);
      value |= static_cast<uint64_t>(next & 0x7F) << shift;
      if (next < 0x80) break;
    }
    return value;
  };
  const auto bytes = [&](std::size_t count) {
    const auto part = message.substr(std::min(at, message.size()), count);
    at += count;
    return part;
  };
  while (at < message.size()) {
    const auto tag = varint();
    const auto number = tag >> 3;
    switch (tag & 7) {
      case 0:
        field(number, varint(), std::string_view());
        break;
      case 1:
        field(number, 0, bytes(8));
        break;
      case 2:
        field(number, 0, bytes(varint()));
        break;
      case 5:
        field(number, 0, bytes(4));
        break;
      default:
        return;
    }
  }
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4 && i < bytes.size(); ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

PieceModel read(const std::string& serialized) {
  PieceModel model;
  const auto piece = [&](std::string_view message) {
    auto& made = model.pieces.emplace_back();
    each_field(message, [&](uint64_t number, uint64_t value, std::string_view bytes) {
      if (number == 1) made.text = bytes;
      if (number == 2) {
        const auto bits = little_endian(bytes);
        std::memcpy(&made.score, &bits, sizeof bits);
      }
      if (number == 3) made.type = value;
    });
  };
  const auto trainer = [&](std::string_view message) {
    each_field(message, [&](uint64_t number, uint64_t value, std::string_view bytes) {
      if (number == 3) model.type = value;
      if (number == 24) model.space_as_suffix = value != 0;
      if (number == 35) model.byte_fallback = value != 0;
      if (number == 44) model.unknown_surface = bytes;
    });
  };
  const auto charsmap = [&](std::string_view blob) {
    if (blob.size() <= 4) return;
    const auto size = little_endian(blob);
    for (std::size_t at = 4; at + 4 <= 4 + std::size_t{size} && at + 4 <= blob.size(); at += 4)
      model.trie.push_back(little_endian(blob.substr(at, 4)));
    model.replacements = blob.substr(std::min<std::size_t>(4 + std::size_t{size}, blob.size()));
  };
  const auto normalizer = [&](std::string_view message) {
    each_field(message, [&](uint64_t number, uint64_t value, std::string_view bytes) {
      if (number == 2) charsmap(bytes);
      if (number == 3) model.dummy_prefix = value != 0;
      if (number == 4) model.remove_extra_spaces = value != 0;
      if (number == 5) model.escape_spaces = value != 0;
    });
  };
  each_field(serialized, [&](uint64_t number, uint64_t, std::string_view bytes) {
    if (number == 1) piece(bytes);
    if (number == 2) trainer(bytes);
    if (number == 3) normalizer(bytes);
    if (number == 5)
      each_field(bytes, [&](uint64_t field, uint64_t, std::string_view rules) {
        model.denormalizes = model.denormalizes || (field == 2 && !rules.empty());
      });
  });
  return model;
}

/// The trie's values are offsets of C strings that stand one after another.
c10::Dict<int64_t, std::string> replacements_of(const PieceModel& model) {
  c10::Dict<int64_t, std::string> all;
  for (std::size_t at = 0; at < model.replacements.size();) {
    const auto end = std::min(model.replacements.find('\0', at), model.replacements.size());
    all.insert(static_cast<int64_t>(at), model.replacements.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Strings are bytes here: what is one character for a person is one to four of them.
const char* const common = R"script(
def character_length(self, text: str, at: int) -> int:
    first = ord(text[at])
    length = 1
    if first >= 240:
        length = 4
    elif first >= 224:
        length = 3
    elif first >= 192:
        length = 2
    return min(length, len(text) - at)

def valid_length(self, text: str, at: int) -> int:
    first = ord(text[at])
    if first < 128:
        return 1
    length = 0
    code = 0
    least = 0
    if first >= 192 and first < 224:
        length = 2
        code = first - 192
        least = 128
    elif first >= 224 and first < 240:
        length = 3
        code = first - 224
        least = 2048
    elif first >= 240 and first < 248:
        length = 4
        code = first - 240
        least = 65536
    if length == 0 or at + length > len(text):
        return 0
    for i in range(1, length):
        next = ord(text[at + i])
        if next < 128 or next >= 192:
            return 0
        code = code * 64 + next - 128
    if code < least or code > 1114111 or (code >= 55296 and code < 57344):
        return 0
    return length

def next_normalized(self, text: str, at: int) -> Tuple[str, int]:
    found = 0
    value = 0
    if len(self.trie) > 0:
        unit = self.trie[0]
        node = (unit >> 10) << ((unit & 512) >> 6)
        i = at
        going = True
        while going and i < len(text):
            label = ord(text[i])
            node = node ^ label
            unit = self.trie[node]
            if (unit & 2147483903) != label:
                going = False
            else:
                node = node ^ ((unit >> 10) << ((unit & 512) >> 6))
                i += 1
                if ((unit >> 8) & 1) == 1:
                    found = i - at
                    value = self.trie[node] & 2147483647
    if found > 0:
        return self.replacements[value], found
    length = self.valid_length(text, at)
    if length == 0:
        return self.replacement_character, 1
    return text[at:at + length], length

def normalize(self, text: str) -> str:
    at = 0
    if self.remove_extra_spaces:
        leading = True
        while leading and at < len(text):
            part, length = self.next_normalized(text, at)
            leading = part == " "
            if leading:
                at += length
    if at >= len(text):
        return ""
    space = self.space if self.escape_spaces else " "
    out: List[str] = []
    if self.dummy_prefix:
        out.append(space)
    after_space = self.remove_extra_spaces
    while at < len(text):
        part, length = self.next_normalized(text, at)
        at += length
        if after_space:
            start = 0
            while start < len(part) and part[start] == " ":
                start += 1
            part = part[start:]
        if len(part) > 0:
            after_space = part[len(part) - 1] == " "
            out.append(part.replace(" ", space))
        if not self.remove_extra_spaces:
            after_space = False
    whole = "".join(out)
    if self.remove_extra_spaces:
        end = len(whole)
        while end >= len(space) and whole[end - len(space):end] == space:
            end -= len(space)
        whole = whole[:end]
    return whole

def add(self, ids: List[int], id: int, part: str):
    if id == self.unk and len(self.byte_ids) > 0:
        for i in range(len(part)):
            ids.append(self.byte_ids[ord(part[i])])
    elif id != self.unk or len(ids) == 0 or ids[len(ids) - 1] != self.unk:
        ids.append(id)

def encode(self, text: str) -> List[int]:
    return self.segment(self.normalize(text))

def repaired(self, bytes: str) -> str:
    out = ""
    at = 0
    while at < len(bytes):
        length = self.valid_length(bytes, at)
        if length == 0:
            out += self.replacement_character
            at += 1
        else:
            out += bytes[at:at + length]
            at += length
    return out

def decode(self, ids: List[int]) -> str:
    out = ""
    at_start = True
    prefix_seen = False
    bytes = ""
    for id in ids:
        if id < 0 or id >= len(self.pieces):
            continue
        kind = self.kinds[id]
        if kind == 6:
            bytes += chr(self.byte_values[id])
            continue
        out += self.repaired(bytes)
        bytes = ""
        if prefix_seen or len(out) > 0:
            at_start = False
        prefix_seen = False
        if kind == 2:
            out += self.unknown_surface
        elif kind != 3:
            piece = self.pieces[id]
            if at_start and (self.dummy_prefix or self.remove_extra_spaces) and piece.startswith(self.space):
                piece = piece[len(self.space):]
                prefix_seen = not self.remove_extra_spaces
            out += piece.replace(self.space, " ")
    return out + self.repaired(bytes)
)script";

// The best path by the sum of log-probabilities; sums are rounded to float32, as SentencePiece keeps them.
const char* const unigram_script = R"script(
def rounded(self, x: float) -> float:
    fraction, exponent = torch.frexp(x)
    return torch.ldexp(float(round(fraction * 16777216.0)), exponent - 24)

def segment(self, text: str) -> List[int]:
    size = len(text)
    scores: List[float] = [0.0 for i in range(size + 1)]
    starts: List[int] = [-1 for i in range(size + 1)]
    best: List[int] = [self.unk for i in range(size + 1)]
    at = 0
    while at < size:
        length = self.character_length(text, at)
        single = False
        end = at + length
        while end <= size and end - at <= self.longest:
            piece = text[at:end]
            if piece in self.table:
                id = self.table[piece]
                score = self.scores[id] + scores[at]
                if starts[end] == -1 or score > scores[end]:
                    scores[end] = self.rounded(score)
                    starts[end] = at
                    best[end] = id
                if end - at == length:
                    single = True
            if end == size:
                end += 1
            else:
                end += self.character_length(text, end)
        if not single:
            score = self.rounded(self.unknown_score + scores[at])
            end = at + length
            if starts[end] == -1 or score > scores[end]:
                scores[end] = score
                starts[end] = at
                best[end] = self.unk
        at += length
    backwards: List[int] = []
    end = size
    while end > 0:
        backwards.append(end)
        end = starts[end]
    ids: List[int] = []
    for i in range(len(backwards)):
        end = backwards[len(backwards) - 1 - i]
        self.add(ids, best[end], text[starts[end]:end])
    return ids
)script";

// Neighbours with the best score are merged first, of equals the leftmost.
const char* const bpe_script = R"script(
def merge_score(self, left: str, right: str) -> float:
    piece = left + right
    if piece in self.table:
        return self.scores[self.table[piece]]
    return self.no_score

def segment(self, text: str) -> List[int]:
    symbols: List[str] = []
    at = 0
    while at < len(text):
        length = self.character_length(text, at)
        symbols.append(text[at:at + length])
        at += length
    merges: List[float] = []
    for i in range(len(symbols) - 1):
        merges.append(self.merge_score(symbols[i], symbols[i + 1]))
    going = len(merges) > 0
    while going:
        best = self.no_score
        place = -1
        for i in range(len(merges)):
            if merges[i] > best:
                best = merges[i]
                place = i
        if place < 0:
            going = False
        else:
            symbols[place] = symbols[place] + symbols[place + 1]
            symbols.pop(place + 1)
            merges.pop(place)
            if place < len(merges):
                merges[place] = self.merge_score(symbols[place], symbols[place + 1])
            if place > 0:
                merges[place - 1] = self.merge_score(symbols[place - 1], symbols[place])
            going = len(merges) > 0
    ids: List[int] = []
    for symbol in symbols:
        self.add(ids, self.table.get(symbol, self.unk), symbol)
    return ids
)script";

const char* const word_script = R"script(
def segment(self, text: str) -> List[int]:
    ids: List[int] = []
    start = 0
    at = 0
    while at < len(text):
        length = self.character_length(text, at)
        if at > start and text[at:at + length] == self.space:
            self.add(ids, self.table.get(text[start:at], self.unk), text[start:at])
            start = at
        at += length
    if at > start:
        self.add(ids, self.table.get(text[start:at], self.unk), text[start:at])
    return ids
)script";

const char* const character_script = R"script(
def segment(self, text: str) -> List[int]:
    ids: List[int] = []
    at = 0
    while at < len(text):
        length = self.character_length(text, at)
        self.add(ids, self.table.get(text[at:at + length], self.unk), text[at:at + length])
        at += length
    return ids
)script";

const std::map<uint64_t, const char*>& segmenters() {
  static const std::map<uint64_t, const char*> all{
      {unigram, unigram_script}, {bpe, bpe_script}, {word, word_script}, {character, character_script}};
  return all;
}

std::string unsupported(const PieceModel& model) {
  if (!segmenters().count(model.type)) return "it is of a kind other than unigram, bpe, word and char";
  if (model.space_as_suffix) return "it writes spaces as suffixes";
  if (model.denormalizes) return "it has rules for denormalisation";
  for (const auto& piece : model.pieces) {
    if (piece.type == user_defined) return "it has user-defined pieces";
    if (piece.type == unused) return "it has unused pieces";
  }
  return "";
}

void set_attributes(torch::jit::Module& module, const PieceModel& model, const Tokenizer& tokenizer) {
  const auto set = [&](const std::string& name, const c10::TypePtr& type, IValue value) {
    module.register_attribute(name, type, std::move(value));
  };
  const auto flag = [&](const std::string& name, bool value) { set(name, c10::BoolType::get(), value); };
  const auto text = [&](const std::string& name, const std::string& value) {
    set(name, c10::StringType::get(), value);
  };
  const auto number = [&](const std::string& name, double value) { set(name, c10::FloatType::get(), value); };

  c10::List<std::string> pieces;
  c10::List<double> scores;
  c10::List<int64_t> kinds, byte_values, byte_ids, trie;
  c10::Dict<std::string, int64_t> table;
  float lowest = std::numeric_limits<float>::max();
  std::size_t longest = 0;
  int64_t bytes_seen = 0;
  for (const auto& piece : model.pieces) {
    const auto id = static_cast<int64_t>(pieces.size());
    pieces.push_back(piece.text);
    scores.push_back(piece.score);
    kinds.push_back(static_cast<int64_t>(piece.type));
    byte_values.push_back(piece.type == byte ? bytes_seen++ : 0);  // <0x00> to <0xFF> stand in order
    if (piece.type == byte && model.byte_fallback) byte_ids.push_back(id);
    if (piece.type != normal) continue;
    table.insert(piece.text, id);
    longest = std::max(longest, piece.text.size());
    lowest = std::min(lowest, piece.score);
  }
  for (const auto unit : model.trie) trie.push_back(unit);
  set("pieces", c10::ListType::ofStrings(), pieces);
  set("scores", c10::ListType::ofFloats(), scores);
  set("kinds", c10::ListType::ofInts(), kinds);
  set("byte_values", c10::ListType::ofInts(), byte_values);
  set("byte_ids", c10::ListType::ofInts(), byte_ids);
  set("trie", c10::ListType::ofInts(), trie);
  set("table", c10::DictType::create(c10::StringType::get(), c10::IntType::get()), table);
  set("replacements", c10::DictType::create(c10::IntType::get(), c10::StringType::get()), replacements_of(model));
  set("unk", c10::IntType::get(), tokenizer.unk_id());
  set("longest", c10::IntType::get(), static_cast<int64_t>(longest));
  constexpr float unknown_penalty = 10;
  number("unknown_score", lowest - unknown_penalty);
  number("no_score", -std::numeric_limits<double>::max());
  flag("dummy_prefix", model.dummy_prefix);
  flag("remove_extra_spaces", model.remove_extra_spaces);
  flag("escape_spaces", model.escape_spaces);
  text("space", "\xE2\x96\x81");
  text("replacement_character", "\xEF\xBF\xBD");
  text("unknown_surface", model.unknown_surface);
  flag("training", false);
}

const std::vector<std::string>& odd_lines() {
  static const std::vector<std::string> lines{"",
                                              " ",
                                              "a",
                                              "Die größte Übung, ärgerlich!",
                                              "u\xCC\x88"
                                              "ber A\xCC\x8A e\xCC\x81",
                                              "  two  spaces\tand a tab ",
                                              "\xE3\x80\x80"
                                              "ideographic\xC2\xA0no-break\xE2\x80\x83"
                                              "em",
                                              "\xEF\xBC\xA6\xEF\xBD\x95\xEF\xBD\x8C\xEF\xBD\x8C \xEF\xAC\x81",
                                              "\xE2\x96\x81"
                                              "a \xE2\x96\x81",
                                              "\xF0\x9F\x99\x82\xF0\x9F\x8E\x89 x \xF0\x9F\x99\x82",
                                              "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB",
                                              "\xE6\xBC\xA2\xE5\xAD\x97",
                                              "zero\xE2\x80\x8Bwidth\xEF\xBB\xBF",
                                              "a\x01"
                                              "b\x7F",
                                              "<s> </s> <unk> <pad> <0x41>",
                                              "\xC3",
                                              "a\xFF\xC0\x80"
                                              "b",
                                              "AaBb 0123456789 \xC2\xBD \xE2\x91\xA0 \xE2\x84\xA2"};
  return lines;
}

std::string difference(torch::jit::Module& module, const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  const auto encode = module.get_method("encode"), decode = module.get_method("decode");
  const auto same_text = [&](const std::vector<int64_t>& ids) {
    return decode({ids}).toStringRef() == tokenizer.decode(ids);
  };
  for (const auto* all : {&odd_lines(), &lines}) {
    for (const auto& line : *all) {
      const auto expected = tokenizer.encode(line);
      if (encode({line}).toIntVector() != expected) return "\"" + line + "\" gets other ids";
      if (!same_text(expected)) return "the ids of \"" + line + "\" give another text";
    }
  }
  std::vector<int64_t> ids;  // all of them, in an order that mixes kinds
  const auto size = tokenizer.size();
  const auto stride = size % 7919 == 0 ? 1 : 7919;
  for (int64_t i = 0; i < size; ++i) {
    ids.push_back(i * stride % size);
    if (ids.size() < 12 && i + 1 < size) continue;
    if (!same_text(ids)) return "some ids give another text";
    ids.clear();
  }
  return "";
}

}  // namespace

ScriptedTokenizer script_tokenizer(const Tokenizer& tokenizer, const torch::jit::Module& root,
                                   const std::vector<std::string>& lines) {
  ScriptedTokenizer made;
  if (tokenizer.kind() != "sentencepiece") {
    made.refused = "it is a " + tokenizer.kind() + " tokenizer, and only those of SentencePiece can be";
    return made;
  }
  const auto model = read(tokenizer.serialized());
  made.refused = unsupported(model);
  if (!made.refused.empty()) return made;
  made.module =
      torch::jit::Module(c10::QualifiedName("__torch__.headlab.Tokenizer"), root._ivalue()->compilation_unit(), true);
  set_attributes(made.module, model, tokenizer);
  made.module.define(std::string(common) + segmenters().at(model.type));
  made.refused = difference(made.module, tokenizer, lines);
  return made;
}

void define_translate(torch::jit::Module& module, const std::string& defaults, const std::string& refused) {
  if (!refused.empty()) {
    std::string quoted;
    for (const char c : refused) quoted += c == '"' || c == '\\' || c == '\n' ? std::string("'") : std::string(1, c);
    module.define("def translate(self, texts: List[str]) -> List[str]:\n    assert False, \"translate: " + quoted +
                  "; use translate_ids\"\n    return texts\n");
    return;
  }
  module.define(R"script(
def source_ids(self, texts: List[str]) -> List[List[int]]:
    ids: List[List[int]] = []
    for text in texts:
        ids.append(self.source_tokenizer.encode(text))
    return ids

def padded(self, rows: List[List[int]]) -> Tensor:
    longest = 0
    for row in rows:
        longest = max(longest, len(row))
    flat: List[int] = []
    for row in rows:
        flat.extend(row)
        flat.extend([self.source_pad for i in range(longest - len(row))])
    return torch.tensor(flat, dtype=4, device=self.anchor.device).view(len(rows), longest)

def translate(self, texts: List[str], )script" +
                defaults + R"script() -> List[str]:
    out: List[str] = []
    rows = 64
    at = 0
    while at < len(texts):
        ids = self.padded(self.source_ids(texts[at:at + rows]))
        found: List[List[int]] = self.translate_ids(ids, beam, length_penalty, max_length).cpu().tolist()
        for row in found:
            words: List[int] = []
            for id in row:
                if id != self.target_pad:
                    words.append(id)
            out.append(self.target_tokenizer.decode(words))
        at += rows
    return out
)script");
}

}  // namespace headlab
