#include "modules/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"

namespace headlab {
namespace {

constexpr const char* lock_name = ".lock";

/// The number in the lock's file; empty where its owner has not written it yet.
std::string owner_of(int file) {
  std::array<char, 32> text;
  const auto got = ::pread(file, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < got && text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9';
       ++i)
    digits += text[static_cast<std::size_t>(i)];
  return digits;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : folder_(folder) {
  const auto path = folder / lock_name;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw_file_error(path, "cannot be written", errno);
  int locked;
  do locked = ::flock(file_, LOCK_EX | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno == EWOULDBLOCK) {
    const auto owner = owner_of(file_);
    ::close(file_);
    throw FileError(folder.string() + ": " + (owner.empty() ? "another process" : "process " + owner) +
                    " is at work in it; wait for it to end, or stop it" +
                    (owner.empty() ? "" : " (kill " + owner + ")") + ": what it has saved stays");
  }
  // What it says is for people alone: a disk that is full is no reason to stop here.
  const auto text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, text.data(), text.size(), 0) < 0) errno = 0;
}

FolderLock::~FolderLock() { ::close(file_); }

void FolderLock::clear() const {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, code)) {
    if (entry.path().filename() == lock_name) continue;
    std::filesystem::remove_all(entry.path(), code);
    if (code) throw_file_error(entry.path(), "cannot be removed", code.value());
  }
  if (code) throw_file_error(folder_, "cannot be read", code.value());
}

}  // namespace headlab
