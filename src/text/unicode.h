#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headlab {

/// Text as code points, with the rules of Python's `str`, which sacreBLEU and so our metrics follow.

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
bool valid_utf8(std::string_view text);

/// The code points of `text`; each byte that belongs to no well-formed sequence becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);

/// UTF-8 of code points.
std::string encode_utf8(std::u32string_view text);

/// What `str.split()` and `str.rstrip()` take for white space: no-break and ideographic spaces included.
bool is_space(char32_t c);

/// Code points, both ends included.
struct CodeRange {
  char32_t first, last;
};

/// Whether one of `ranges`, which ascend, has `c`.
bool within(std::span<const CodeRange> ranges, char32_t c);

/// `str.lower()` for Unicode 14, the final sigma included: "ΣΑΣ" becomes "σας".
std::u32string lower(std::u32string_view text);

}  // namespace headlab
