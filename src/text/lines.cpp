#include "src/text/lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "modules/base/error.h"
#include "src/text/unicode.h"

namespace headlab {

LineFault line_fault(const std::string& line) {
  if (line.find('\0') != std::string::npos) return LineFault::nul;
  // A byte that is ASCII and no white space settles "empty" without decoding; most lines have one at the start.
  const bool visible = std::any_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!valid_utf8(line)) return LineFault::not_utf8;
  if (visible) return LineFault::none;
  const std::u32string text = decode_utf8(line);
  return std::all_of(text.begin(), text.end(), is_space) ? LineFault::empty : LineFault::none;
}

LineReader::LineReader(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw FileError(path + ": expected a text file, got a folder");
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) throw FileError(path + ": cannot be read: " + std::strerror(errno));
}

bool LineReader::next(std::string& line) {
  if (!std::getline(file_, line)) {
    if (file_.bad()) throw FileError(path_ + ": reading failed after line " + std::to_string(counts_.lines));
    return false;
  }
  const bool ended = !file_.eof();
  if (counts_.lines == 0 && line.compare(0, 3, "\xEF\xBB\xBF") == 0) {
    counts_.byte_order_mark = true;
    line.erase(0, 3);
    if (line.empty() && !ended) return false;  // nothing but the mark: no line at all
  }
  if (ended && !line.empty() && line.back() == '\r') {
    line.pop_back();
    ++counts_.crlf;
  }
  ++counts_.lines;
  fault_ = line_fault(line);
  counts_.empty += fault_ == LineFault::empty;
  counts_.nul += fault_ == LineFault::nul;
  counts_.not_utf8 += fault_ == LineFault::not_utf8;
  return true;
}

std::vector<std::string> read_lines(const std::string& path, LineCounts* counts) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  if (counts) *counts = reader.counts();
  return lines;
}

}  // namespace headlab
