#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// A table for people. Columns whose cells are all numbers, signs, units of %, or empty stand right, others left.
struct Table {
  std::vector<std::string> header;             // may be empty
  std::vector<std::vector<std::string>> rows;  // a short row is filled with empty cells

  /// Lines with two spaces between the columns, each at most `columns` wide: the widest columns of text are cut ("…")
  /// first, never below 8 columns; numbers are never cut. Ends with a newline; empty for a table without rows.
  std::string text(int64_t columns, int64_t indent = 2) const;
};

}  // namespace headlab
