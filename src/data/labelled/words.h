#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// A word of a text and where it stands: code points [start, end).
struct TextWord {
  std::string text;
  int64_t start = 0, end = 0;
};

/// The words of a text: each punctuation mark (of ASCII, Latin-1, general and CJK punctuation) is one, and so is each
/// run of other characters between white space and marks. "Bowie's" is Bowie, ' and s, so that a span of the text can
/// begin and end at any of them.
std::vector<TextWord> split_words(std::string_view text);

/// Code points [start, end) of a text.
std::string part_of_text(std::string_view text, int64_t start, int64_t end);

}  // namespace headlab
