#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/parallel_text.h"

namespace headlab {

/// A text of one language as its lines, and what became of them.
struct PlainText {
  std::vector<std::string> lines;  // empty ones too: they are part of the text
  int64_t read = 0, not_utf8 = 0, nul = 0, crlf = 0;

  /// Reads a file. `usable`: lines with a NUL byte or that are not UTF-8 are left out and counted; `all`: they are an
  /// error with their number. Throws FileError where the file can't be read or nothing in it is usable.
  static PlainText read_file(const std::string& path, KeepLines keep);

  int64_t skipped() const { return not_utf8 + nul; }
  /// All lines, each with its LF.
  std::string text() const;
  /// Words between white space, and one more for each line's end, as the perplexities of WikiText are counted
  /// (1609.07843, section 4.1: every line ends in <eos>).
  int64_t words_and_line_ends() const;
  /// Code points, line ends included.
  int64_t characters() const;
};

/// A text cut in three: its beginning to train on, then `valid` and `test` as shares of its characters. "line": the
/// cuts are moved back to the start of a line, so that no line is in two parts; "character": they are exact, and the
/// line that is cut counts as one in each part. Throws Error where a part would be empty.
struct CutText {
  PlainText train, valid, test;
};
CutText cut_text(const PlainText& whole, double valid, double test, const std::string& at);

}  // namespace headlab
