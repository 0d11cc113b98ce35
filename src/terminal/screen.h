#pragma once

#include <cstdint>
#include <string>

namespace headlab {

/// What can be shown where the output goes.
struct Screen {
  bool interactive = false;  // a terminal: a line can be written over
  bool colour = false;
  int64_t columns = 80;  // of a terminal; tables in a pipe are made for 80 too

  /// The screen behind a file descriptor (2: standard error). Colours only on a terminal, and not where the environment
  /// has NO_COLOR (no-color.org) or TERM=dumb, which cannot write over a line either. COLUMNS, where set, is the width.
  static Screen of(int file_descriptor);
};

/// How text stands out. It never carries meaning alone: "holds" is a word and green.
enum class Style { plain, bold, dim, good, bad };

/// The text in that style where the screen has colours, else unchanged.
std::string styled(const std::string& text, Style style, const Screen& screen);

}  // namespace headlab
