#pragma once

#include <filesystem>

namespace headlab {

/// Holds a folder for one process: two that write into it would spoil each other's work. The lock is an flock of
/// `<folder>/.lock`, a file that holds the number of the process and stays; the system gives the lock back when the
/// process ends, however it ends, so that none is ever stale. Within one process a second lock of the same folder is
/// refused as well. File systems without locks are not guarded.
class FolderLock {
 public:
  /// The folder must exist. Throws FileError: "<folder>: process 1234 is at work in it; wait for it to end, ...".
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Removes all in the folder but the lock.
  void clear() const;

 private:
  std::filesystem::path folder_;
  int file_ = -1;
};

}  // namespace headlab
