#include "modules/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "modules/base/error.h"

namespace headlab {
namespace {

constexpr std::pair<int, const char*> reasons[] = {
    {ENOSPC, "the disk is full; free some space or choose another folder"},
    {EDQUOT, "the disk quota is used up; free some space or choose another folder"},
    {EACCES, "no permission; change the permissions or choose another place"},
    {EPERM, "no permission; change the permissions or choose another place"},
    {EROFS, "the file system is read-only; choose another folder"},
    {ENOENT, "no such file or folder"},
    {ENOTDIR, "a part of the path is a file, not a folder"},
    {EISDIR, "it is a folder, not a file"},
    {EMFILE, "this process has too many files open; raise the limit (ulimit -n)"},
    {EFBIG, "the file would be larger than the limit of the file system or of this process (ulimit -f)"},
};

std::filesystem::path folder_of(const std::filesystem::path& path) {
  auto folder = path.parent_path();
  return folder.empty() ? "." : folder;
}

void write_all(int file, const void* data, std::size_t bytes, const std::filesystem::path& path) {
  auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    auto written = ::write(file, at, std::min<std::size_t>(bytes, 1 << 30));  // one call writes at most 2 GiB
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_file_error(path, "cannot be written", errno);
    }
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

int64_t size_of(int file, const std::filesystem::path& path) {
  struct stat info;
  if (::fstat(file, &info) != 0) throw_file_error(path, "cannot be read", errno);
  return info.st_size;
}

/// The length of the file up to and with its last newline.
int64_t whole_lines(int file, int64_t bytes, const std::filesystem::path& path) {
  std::array<char, 4096> part;
  while (bytes > 0) {
    auto begin = std::max<int64_t>(0, bytes - static_cast<int64_t>(part.size()));
    auto got = ::pread(file, part.data(), static_cast<std::size_t>(bytes - begin), begin);
    if (got != bytes - begin) throw_file_error(path, "cannot be read", got < 0 ? errno : EIO);
    for (auto i = got; i > 0; --i) {
      if (part[static_cast<std::size_t>(i - 1)] == '\n') return begin + i;
    }
    bytes = begin;
  }
  return 0;
}

}  // namespace

void throw_file_error(const std::filesystem::path& path, const std::string& what, int code) {
  auto known = std::find_if(std::begin(reasons), std::end(reasons), [&](auto& reason) { return reason.first == code; });
  throw FileError(path.string() + ": " + what + ": " +
                  (known != std::end(reasons) ? known->second : std::strerror(code)));
}

std::string read_file(const std::filesystem::path& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_file_error(path, "cannot be read", errno);
  std::string bytes;
  std::array<char, 1 << 16> part;
  ssize_t got;
  while ((got = ::read(file, part.data(), part.size())) != 0) {
    if (got > 0) {
      bytes.append(part.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      int code = errno;
      ::close(file);
      throw_file_error(path, "cannot be read", code);
    }
  }
  ::close(file);
  return bytes;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  int file = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) throw_file_error(folder, "cannot be read", errno);
  int code = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  if (code != 0 && code != EINVAL && code != ENOTSUP) throw_file_error(folder, "cannot be written", code);
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw_file_error(folder, "cannot be made", code.value());
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  temporary_ = folder_of(path) / ("." + path.filename().string() + "." + std::to_string(::getpid()) + ".tmp");
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw_file_error(path_, "cannot be written", errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) { write_all(file_, data, bytes, path_); }

void AtomicFile::commit() {
  if (::fsync(file_) != 0) throw_file_error(path_, "cannot be written", errno);
  if (::close(std::exchange(file_, -1)) != 0) throw_file_error(path_, "cannot be written", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_file_error(path_, "cannot be written", errno);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

LineFile::LineFile(const std::filesystem::path& path, std::optional<int64_t> keep_bytes) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw_file_error(path, "cannot be written", errno);
  try {
    auto size = size_of(file_, path);
    if (keep_bytes && (*keep_bytes < 0 || *keep_bytes > size)) {
      throw FileError(path.string() + ": expected at least " + std::to_string(*keep_bytes) +
                      " bytes, as when the checkpoint was saved, got " + std::to_string(size) +
                      "; lines were lost: restore the file or start the run anew");
    }
    bytes_ = keep_bytes ? *keep_bytes : whole_lines(file_, size, path);
    if (bytes_ != size && ::ftruncate(file_, bytes_) != 0) throw_file_error(path, "cannot be written", errno);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

LineFile::~LineFile() { ::close(file_); }

void LineFile::append(std::string_view line) {
  if (line.find('\n') != std::string_view::npos) throw std::invalid_argument("LineFile::append: more than one line");
  std::string whole(line);
  whole += '\n';
  try {
    write_all(file_, whole.data(), whole.size(), path_);
  } catch (const FileError&) {
    // A part of the line may be there; without it the next line, once there is space again, starts on its own.
    if (::ftruncate(file_, bytes_) != 0) errno = 0;
    throw;
  }
  bytes_ += static_cast<int64_t>(whole.size());
}

void LineFile::sync() {
  if (::fsync(file_) != 0) throw_file_error(path_, "cannot be written", errno);
}

}  // namespace headlab
