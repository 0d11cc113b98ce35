#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headlab {

// Files that survive a kill or a full disk: a reader finds the old contents or the new, never a part of either. POSIX.
// All of these throw FileError: "<path>: cannot be written: the disk is full; ...".

/// The whole of a file, byte for byte.
std::string read_file(const std::filesystem::path& path);

/// Replaces `path` by `bytes` atomically (see AtomicFile). The folder must exist.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Makes names created, renamed or removed in `folder` survive a loss of power. File systems that cannot are ignored.
void sync_folder(const std::filesystem::path& folder);

/// Makes `folder` and its parents where they are absent: "<folder>: cannot be made: no permission; ...".
void make_folders(const std::filesystem::path& folder);

/// The FileError "<path>: <what>: <reason of the errno `code`>", with the way out where there is one.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, const std::string& what, int code);

/// A file being written beside its final place, as ".<name>.<process>.tmp". `commit` puts it into place: fsync, rename,
/// fsync of the folder. Without a commit the destructor removes it and what was there before stays.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, std::size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int file_ = -1;
};

/// A file of lines that only grows, such as metrics.jsonl. One writer at a time.
///
/// To resume exactly, save `bytes()` with the checkpoint, after `sync()`, and pass it back as `keep_bytes`: the lines
/// written later, which the resumed run writes again, are cut off. Without `keep_bytes` everything is kept but a last
/// line without its newline (a write that was interrupted).
class LineFile {
 public:
  explicit LineFile(const std::filesystem::path& path, std::optional<int64_t> keep_bytes = std::nullopt);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void append(std::string_view line);  // `line` without its newline; std::invalid_argument if it holds one
  void sync();                         // everything appended so far survives a loss of power
  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace headlab
