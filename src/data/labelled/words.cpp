#include "src/data/labelled/words.h"

#include "src/text/unicode.h"

namespace headlab {
namespace {

bool is_mark(char32_t c) {
  if (c < 0x80)
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
  return (c >= 0xA1 && c <= 0xBF) || (c >= 0x2010 && c <= 0x205E) || (c >= 0x3001 && c <= 0x303F) ||
         (c >= 0xFF01 && c <= 0xFF0F);
}

}  // namespace

std::vector<TextWord> split_words(std::string_view text) {
  const auto all = decode_utf8(text);
  std::vector<TextWord> words;
  for (std::size_t i = 0; i < all.size();) {
    if (is_space(all[i])) {
      ++i;
      continue;
    }
    auto end = i + 1;
    if (!is_mark(all[i]))
      while (end < all.size() && !is_space(all[end]) && !is_mark(all[end])) ++end;
    words.push_back(
        {encode_utf8(std::u32string_view(all).substr(i, end - i)), static_cast<int64_t>(i), static_cast<int64_t>(end)});
    i = end;
  }
  return words;
}

std::string part_of_text(std::string_view text, int64_t start, int64_t end) {
  const auto all = decode_utf8(text);
  return encode_utf8(
      std::u32string_view(all).substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start)));
}

}  // namespace headlab
