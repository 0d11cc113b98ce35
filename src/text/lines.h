#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace headlab {

/// What was found in a text file besides its lines.
struct LineCounts {
  int64_t lines = 0;
  int64_t empty = 0;       // nothing but white space
  int64_t nul = 0;         // with a NUL byte
  int64_t not_utf8 = 0;    // not well-formed UTF-8
  int64_t crlf = 0;        // ended in CR LF; the CR is dropped
  bool byte_order_mark = false;  // the file began with one; it is dropped
};

/// What is wrong with one line.
enum class LineFault { none, empty, nul, not_utf8 };

/// The fault of a line, the gravest where there are several (NUL, then UTF-8, then empty).
LineFault line_fault(const std::string& line);

/// Reads a text file line by line, holding one line in memory. Only LF ends a line, so that parallel files stay
/// parallel whatever else they contain (a form feed, U+2028, a lone CR); a CR right before LF is dropped. The last line
/// may lack its LF. Throws FileError for a file that is missing, a folder, or cannot be read.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  /// The next line without its end; false at the end of the file. Faulty lines are counted and returned all the same.
  bool next(std::string& line);
  const LineCounts& counts() const { return counts_; }
  const std::string& path() const { return path_; }
  /// The fault of the line returned last.
  LineFault fault() const { return fault_; }

 private:
  std::string path_;
  std::ifstream file_;
  LineCounts counts_;
  LineFault fault_ = LineFault::none;
};

/// All lines of a file, faulty ones included.
std::vector<std::string> read_lines(const std::string& path, LineCounts* counts = nullptr);

}  // namespace headlab
