#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// The words and punctuation marks of a text, as BERT's basic tokenisation finds them (1810.04805, and its
/// tokenization.py):
///
///   control and format characters (Cc, Cf), NUL and U+FFFD go; tab, CR, LF and the spaces (Zs) are spaces
///   each CJK ideograph is a word of its own
///   what white space separates is a word; with `lower_case` in lower case, decomposed (NFD), without its accents (Mn)
///   each punctuation mark (ASCII signs that are no letters or digits; categories P*) is a word of its own
///
/// Hangul syllables become their jamo with `lower_case`, as NFD has it. The canonical order of the few combining marks
/// that are not Mn is left as it is.
std::vector<std::u32string> basic_tokens(std::u32string_view text, bool lower_case);

}  // namespace headlab
