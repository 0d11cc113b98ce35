#include "src/text/lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "src/terminal/format.h"
#include "src/text/unicode.h"

namespace headlab {
namespace {

constexpr std::size_t read_at_once = 1 << 16;

}  // namespace

LineFault line_fault(const std::string& line, std::size_t longest) {
  if (line.size() > longest) return LineFault::too_long;
  if (line.find('\0') != std::string::npos) return LineFault::nul;
  // A byte that is ASCII and no white space settles "empty" without decoding; most lines have one at the start.
  const bool visible = std::any_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!valid_utf8(line)) return LineFault::not_utf8;
  if (visible) return LineFault::none;
  const std::u32string text = decode_utf8(line);
  return std::all_of(text.begin(), text.end(), is_space) ? LineFault::empty : LineFault::none;
}

LineReader::LineReader(const std::string& path, std::size_t longest) : path_(path), longest_(longest) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw FileError(path + ": expected a text file, got a folder");
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw_file_error(path, "cannot be read", errno);
  opened_ = stamp();
  const auto whole =
      static_cast<std::size_t>(std::max<int64_t>(opened_.bytes, 0)) + 1;  // one more: its end shows at once
  buffer_.resize(opened_.bytes < 0 ? read_at_once : std::min(whole, read_at_once));
}

LineReader::~LineReader() { ::close(file_); }

LineReader::Stamp LineReader::stamp() const {
  struct stat info;
  if (::fstat(file_, &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

void LineReader::check_unchanged() const {
  const auto now = stamp();
  const bool whole = opened_.bytes < 0 || read_ == opened_.bytes;
  if (now == opened_ && whole) return;
  throw FileError(path_ + ": was changed while it was read (" + std::to_string(opened_.bytes) +
                  " bytes when it was opened, " + std::to_string(now.bytes) +
                  " at its end); run again when nothing writes into it");
}

bool LineReader::more() {
  if (ended_) return false;
  ssize_t got;
  do got = ::read(file_, buffer_.data(), buffer_.size());
  while (got < 0 && errno == EINTR);
  if (got < 0)
    throw FileError(path_ + ": reading failed after line " + std::to_string(counts_.lines) + ": " +
                    std::strerror(errno));
  filled_ = static_cast<std::size_t>(got);
  at_ = 0;
  read_ += got;
  ended_ = got == 0;
  if (ended_) check_unchanged();
  return !ended_;
}

bool LineReader::next(std::string& line) {
  line.clear();
  bool any = false, fed = false, long_line = false, carriage_return = false;  // the last of these: the last byte so far
  while (!fed && (at_ < filled_ || more())) {
    any = true;
    const auto* from = buffer_.data() + at_;
    const auto* found = static_cast<const char*>(std::memchr(from, '\n', filled_ - at_));
    fed = found != nullptr;
    const auto length = fed ? static_cast<std::size_t>(found - from) : filled_ - at_;
    if (length > 0) carriage_return = from[length - 1] == '\r';
    // Room for a byte order mark and a CR, which are not of the line.
    const auto room = longest_ + 4 - line.size();
    line.append(from, std::min(length, room));
    long_line = long_line || length > room;
    at_ += length + (fed ? 1 : 0);
  }
  if (!any) return false;
  if (counts_.lines == 0 && line.compare(0, 3, "\xEF\xBB\xBF") == 0) {
    counts_.byte_order_mark = true;
    line.erase(0, 3);
    if (line.empty() && !fed) return false;  // nothing but the mark: no line at all
  }
  if (fed && carriage_return) {
    if (!long_line) line.pop_back();
    ++counts_.crlf;
  }
  ++counts_.lines;
  fault_ = long_line ? LineFault::too_long : line_fault(line, longest_);
  if (line.size() > longest_) line.resize(longest_);
  counts_.empty += fault_ == LineFault::empty;
  counts_.nul += fault_ == LineFault::nul;
  counts_.not_utf8 += fault_ == LineFault::not_utf8;
  counts_.too_long += fault_ == LineFault::too_long;
  return true;
}

void LineReader::refuse_fault() const {
  const auto refuse = [&](const std::string& got) {
    throw FileError(path_ + ":" + std::to_string(counts_.lines) + ": expected UTF-8 text, got " + got);
  };
  switch (fault_) {
    case LineFault::none:
    case LineFault::empty:
      return;
    case LineFault::nul:
      return refuse("a NUL byte");
    case LineFault::not_utf8:
      return refuse("bytes that are not UTF-8");
    case LineFault::too_long:
      return refuse("a line of more than " + with_commas(static_cast<int64_t>(longest_)) + " bytes");
  }
}

std::vector<std::string> read_lines(const std::string& path, LineCounts* counts) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  if (counts) *counts = reader.counts();
  return lines;
}

}  // namespace headlab
