#include "src/text/basic_tokens.h"

#include <algorithm>
#include <iterator>

#include "src/text/unicode.h"

namespace headlab {
namespace {

struct Base {
  char32_t of, first, second, third;
};

#include "src/text/basic_tokens_table.inc"

bool is_ideograph(char32_t c) {
  constexpr CodeRange ideographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return within(ideographs, c);
}

bool is_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126) ||
         within(punctuation, c);
}

/// The code points of NFD that are no marks.
void append_without_marks(char32_t c, std::u32string& out) {
  constexpr char32_t first_syllable = 0xAC00, last_syllable = 0xD7A3, vowels = 21, tails = 28;
  if (c < 0x80) {
    out.push_back(c);
  } else if (c >= first_syllable && c <= last_syllable) {  // Unicode 3.12, conjoining jamo
    const char32_t at = c - first_syllable;
    out.push_back(0x1100 + at / (vowels * tails));
    out.push_back(0x1161 + at % (vowels * tails) / tails);
    if (at % tails != 0) out.push_back(0x11A7 + at % tails);
  } else if (!within(nonspacing_marks, c)) {
    const auto* base = std::lower_bound(std::begin(bases), std::end(bases), c,
                                        [](const Base& b, char32_t value) { return b.of < value; });
    if (base == std::end(bases) || base->of != c) {
      out.push_back(c);
      return;
    }
    for (const char32_t part : {base->first, base->second, base->third})
      if (part != 0) out.push_back(part);
  }
}

}  // namespace

std::vector<std::u32string> basic_tokens(std::u32string_view text, bool lower_case) {
  std::u32string clean;
  for (const char32_t c : text) {
    if (c == U'\t' || c == U'\n' || c == U'\r' || within(spaces, c)) {
      clean.push_back(U' ');
    } else if (c == 0 || c == 0xFFFD || within(controls, c)) {
      continue;
    } else if (is_ideograph(c)) {
      clean.append({U' ', c, U' '});
    } else {
      clean.push_back(c);
    }
  }
  if (lower_case) {
    std::u32string bare;
    for (const char32_t c : lower(clean)) append_without_marks(c, bare);
    clean = std::move(bare);
  }
  std::vector<std::u32string> tokens;
  bool open = false;  // the last token is a word that goes on
  for (const char32_t c : clean) {
    if (is_space(c)) {
      open = false;
    } else if (is_punctuation(c)) {
      tokens.emplace_back(1, c);
      open = false;
    } else {
      if (!open) tokens.emplace_back();
      tokens.back().push_back(c);
      open = true;
    }
  }
  return tokens;
}

}  // namespace headlab
