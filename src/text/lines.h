#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// What was found in a text file besides its lines.
struct LineCounts {
  int64_t lines = 0;
  int64_t empty = 0;             // nothing but white space
  int64_t nul = 0;               // with a NUL byte
  int64_t not_utf8 = 0;          // not well-formed UTF-8
  int64_t too_long = 0;          // of more than longest_line bytes; what is beyond is not kept
  int64_t crlf = 0;              // ended in CR LF; the CR is dropped
  bool byte_order_mark = false;  // the file began with one; it is dropped
};

/// What is wrong with one line.
enum class LineFault { none, empty, nul, not_utf8, too_long };

/// The longest line that is kept, in bytes: a file that is no text, or lacks its line feeds, must not fill the memory.
constexpr std::size_t longest_line = 1 << 20;

/// For text that is held in memory as a whole: a book may be one line.
constexpr std::size_t any_length = static_cast<std::size_t>(-1) / 2;

/// The fault of a line, the gravest where there are several (too long, NUL, then UTF-8, then empty).
LineFault line_fault(const std::string& line, std::size_t longest = longest_line);

/// Reads a text file line by line, holding one line in memory. Only LF ends a line, so that parallel files stay
/// parallel whatever else they contain (a form feed, U+2028, a lone CR); a CR right before LF is dropped. The last line
/// may lack its LF. Throws FileError for a file that is missing, a folder, or cannot be read, and at its end for one
/// that was changed while it was read: its lines would be partly those of before.
class LineReader {
 public:
  /// `longest`: lines of more bytes are too long.
  explicit LineReader(const std::string& path, std::size_t longest = longest_line);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  /// The next line without its end; false at the end of the file. Faulty lines are counted and returned all the same,
  /// of one that is too long its first `longest` bytes.
  bool next(std::string& line);
  const LineCounts& counts() const { return counts_; }
  const std::string& path() const { return path_; }
  /// The fault of the line returned last.
  LineFault fault() const { return fault_; }
  /// Throws FileError with its number where the line returned last has a fault other than that it is empty.
  void refuse_fault() const;

 private:
  struct Stamp {  // of a regular file; of a pipe it stays as it is here
    int64_t bytes = -1, seconds = 0, nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  bool more();  // fills the buffer; false at the end
  void check_unchanged() const;
  std::string path_;
  std::size_t longest_;
  int file_ = -1;
  Stamp opened_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;  // in the buffer
  int64_t read_ = 0;                 // bytes
  bool ended_ = false;
  LineCounts counts_;
  LineFault fault_ = LineFault::none;
};

/// All lines of a file, faulty ones included.
std::vector<std::string> read_lines(const std::string& path, LineCounts* counts = nullptr);

}  // namespace headlab
