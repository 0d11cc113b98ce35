#include "src/text/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace headlab {
namespace {

struct Run {
  char32_t first, last, stride;
  int32_t delta;
};
struct Range {
  char32_t first, last;
};

#include "src/text/lowercase_table.inc"

/// The entry whose [first, last] holds c, or nullptr; the tables are sorted and do not overlap.
template <class Entry, std::size_t N>
const Entry* find(const Entry (&table)[N], char32_t c) {
  const Entry* entry = std::upper_bound(std::begin(table), std::end(table), c,
                                        [](char32_t value, const Entry& e) { return value < e.first; });
  if (entry == std::begin(table)) return nullptr;
  --entry;
  return c <= entry->last ? entry : nullptr;
}

char32_t lower_one(char32_t c) {
  const Run* run = find(lower_runs, c);
  if (!run || (c - run->first) % run->stride != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + run->delta);
}

/// A capital sigma is final when a cased letter stands before it and none after it, case-ignorable ones passed over.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && find(case_ignorable, text[before - 1])) --before;
  if (before == 0 || !find(cased, text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && find(case_ignorable, text[after])) ++after;
  return after == text.size() || !find(cased, text[after]);
}

/// Decodes the sequence at text[at]; returns its length in bytes, 0 where it is not well formed.
std::size_t decode_one(std::string_view text, std::size_t at, char32_t& c) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    c = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF ? 2
                             : (lead & 0xF0) == 0xE0      ? 3
                             : (lead & 0xF8) == 0xF0      ? 4
                                                          : 0;
  if (length == 0 || at + length > text.size()) return 0;
  c = lead & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    c = (c << 6) | (byte(i) & 0x3F);
  }
  const char32_t smallest = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  return c < smallest || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : length;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  char32_t c = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_one(text, at, c);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const std::size_t length = decode_one(text, at, c);
    result.push_back(length == 0 ? U'\uFFFD' : c);
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string encode_utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  const auto tail = [&](char32_t c, int shift) { result.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3F))); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      result.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      result.push_back(static_cast<char>(0xC0 | (c >> 6)));
      tail(c, 0);
    } else if (c < 0x10000) {
      result.push_back(static_cast<char>(0xE0 | (c >> 12)));
      tail(c, 6);
      tail(c, 0);
    } else {
      result.push_back(static_cast<char>(0xF0 | (c >> 18)));
      tail(c, 12);
      tail(c, 6);
      tail(c, 0);
    }
  }
  return result;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool within(std::span<const CodeRange> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t value, const CodeRange& r) { return value < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

std::u32string lower(std::u32string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == U'\u0130') {  // the one code point whose lower case is two
      result += U"i\u0307";
    } else if (text[i] == U'\u03A3') {
      result.push_back(is_final_sigma(text, i) ? U'\u03C2' : U'\u03C3');
    } else {
      result.push_back(lower_one(text[i]));
    }
  }
  return result;
}

}  // namespace headlab
