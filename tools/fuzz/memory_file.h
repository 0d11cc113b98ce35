#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tools/fuzz/targets.h"

namespace headlab::fuzz {

/// A file in memory that is opened by its name like any other. `target`: whose promise is broken where there can be
/// none.
class MemoryFile {
 public:
  explicit MemoryFile(const char* target) : target_(target), file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0) broken(target_, "no file in memory could be made");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  /// The name of the file, which has these bytes now.
  std::string holding(const std::string& bytes) const {
    if (::ftruncate(file_, 0) != 0) broken(target_, "a file in memory could not be emptied");
    for (std::size_t done = 0; done < bytes.size();) {
      const auto wrote = ::pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (wrote <= 0) broken(target_, "a file in memory could not be written");
      done += static_cast<std::size_t>(wrote);
    }
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  const char* target_;
  int file_;
};

}  // namespace headlab::fuzz
