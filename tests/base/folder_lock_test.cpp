#include "modules/base/folder_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

TEST_CASE("a folder has one holder at a time, who is named", "[base]") {
  Scratch scratch;
  std::optional<FolderLock> lock(std::in_place, scratch.path);
  const auto me = std::to_string(getpid());
  CHECK_THROWS_WITH(FolderLock(scratch.path), scratch.path.string() + ": process " + me +
                                                  " is at work in it; wait for it to end, or stop it (kill " + me +
                                                  "): what it has saved stays");
  lock.reset();
  CHECK_NOTHROW(FolderLock(scratch.path));
  CHECK_THROWS_WITH(FolderLock(scratch / "none"),
                    ContainsSubstring("none/.lock: cannot be written: no such file or folder"));
}

TEST_CASE("a lock of a process that was killed is none", "[base]") {
  Scratch scratch;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    FolderLock lock(scratch.path);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte;
  REQUIRE(read(ends[0], &byte, 1) == 1);
  CHECK_THROWS_WITH(FolderLock(scratch.path),
                    ContainsSubstring("process " + std::to_string(child) + " is at work in it"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  CHECK(read_file(scratch / ".lock") == std::to_string(child) + "\n");  // the file is there, and holds nobody off
  CHECK_NOTHROW(FolderLock(scratch.path));
}

TEST_CASE("a locked folder is cleared of all but the lock", "[base]") {
  Scratch scratch;
  const FolderLock lock(scratch.path);
  make_folders(scratch / "a/b");
  write_file_atomically(scratch / "a/b/c", "x");
  write_file_atomically(scratch / "d", "x");
  lock.clear();
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path), {}) == 1);
  CHECK_THROWS_AS(FolderLock(scratch.path), FileError);
}

TEST_CASE("a folder that can't be made is named", "[base]") {
  Scratch scratch;
  write_file_atomically(scratch / "file", "x");
  CHECK_THROWS_WITH(make_folders(scratch / "file/a/b"),
                    (scratch / "file/a/b").string() + ": cannot be made: a part of the path is a file, not a folder");
  make_folders(scratch / "a/b");
  CHECK_NOTHROW(make_folders(scratch / "a/b"));
}
