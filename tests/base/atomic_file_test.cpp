#include "modules/base/atomic_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// Files of this process may be no larger than `bytes`, as on a disk that fills up.
struct SmallFiles {
  explicit SmallFiles(rlim_t bytes) : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
  rlimit before{};
  void (*handler)(int);
};

/// Not the superuser, whom permissions do not stop.
struct Unprivileged {
  Unprivileged() {
    if (was_root) became = seteuid(65534) == 0;
  }
  ~Unprivileged() {
    if (became && seteuid(0) != 0) std::abort();
  }
  bool was_root = geteuid() == 0, became = false;
};

}  // namespace

TEST_CASE("an atomic write gives the bytes and leaves nothing else", "[base]") {
  Scratch scratch;
  auto path = scratch / "a.json";
  std::string bytes("one\0two\n", 8);
  write_file_atomically(path, bytes);
  CHECK(read_file(path) == bytes);
  write_file_atomically(path, "shorter");
  CHECK(read_file(path) == "shorter");
  CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("an atomic file that is not committed leaves what was there", "[base]") {
  Scratch scratch;
  write_file_atomically(scratch / "a", "old");
  {
    AtomicFile file(scratch / "a");
    file.write("new");
    CHECK(read_file(scratch / "a") == "old");
  }
  CHECK(read_file(scratch / "a") == "old");
  CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("a write that fails half-way keeps the old file and removes its own", "[base]") {
  Scratch scratch;
  write_file_atomically(scratch / "a", "old");
  std::string message;
  {
    SmallFiles small(1000);
    try {
      write_file_atomically(scratch / "a", std::string(5000, 'x'));
    } catch (const FileError& error) {
      message = error.what();
    }
  }
  CHECK_THAT(message, ContainsSubstring("a: cannot be written: the file would be larger than the limit"));
  CHECK(read_file(scratch / "a") == "old");
  CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("file errors say which file, what and why", "[base]") {
  Scratch scratch;
  auto missing = scratch / "none/a";
  CHECK_THROWS_WITH(write_file_atomically(missing, "x"),
                    missing.string() + ": cannot be written: no such file or folder");
  CHECK_THROWS_WITH(read_file(missing), missing.string() + ": cannot be read: no such file or folder");
  write_file_atomically(scratch / "file", "x");
  auto below = scratch / "file/a";
  CHECK_THROWS_WITH(write_file_atomically(below, "x"),
                    below.string() + ": cannot be written: a part of the path is a file, not a folder");
  CHECK_THROWS_AS(read_file(scratch.path), FileError);
}

TEST_CASE("a folder without permission is named with the way out", "[base]") {
  Scratch scratch;
  auto path = scratch / "a";
  std::filesystem::permissions(scratch.path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec |
                                                 std::filesystem::perms::others_exec);
  std::string message;
  {
    Unprivileged user;
    try {
      write_file_atomically(path, "x");
    } catch (const FileError& error) {
      message = error.what();
    }
  }
  std::filesystem::permissions(scratch.path, std::filesystem::perms::owner_all);
  CHECK(message ==
        path.string() + ": cannot be written: no permission; change the permissions or choose another place");
}

TEST_CASE("a full disk is reported as one", "[base]") {
  if (!std::filesystem::exists("/dev/full")) return;
  LineFile lines("/dev/full", 0);
  CHECK_THROWS_WITH(lines.append("{}"),
                    "/dev/full: cannot be written: the disk is full; free some space or choose another folder");
}

TEST_CASE("a line file grows by whole lines and is cut back to where a checkpoint left it", "[base]") {
  Scratch scratch;
  auto path = scratch / "metrics.jsonl";
  int64_t saved = 0;
  {
    LineFile lines(path);
    lines.append("{\"step\":1}");
    lines.append("{\"step\":2}");
    lines.sync();
    saved = lines.bytes();
    lines.append("{\"step\":3}");
    CHECK_THROWS_AS(lines.append("two\nlines"), std::invalid_argument);
  }
  CHECK(read_file(path) == "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  {
    LineFile lines(path, saved);
    CHECK(lines.bytes() == saved);
    lines.append("{\"again\":3}");
  }
  CHECK(read_file(path) == "{\"step\":1}\n{\"step\":2}\n{\"again\":3}\n");
  CHECK_THROWS_WITH(LineFile(path, 1000), ContainsSubstring("expected at least 1000 bytes") &&
                                              ContainsSubstring("got 34") && ContainsSubstring("lines were lost"));
}

TEST_CASE("a line that was interrupted is dropped, whole lines stay", "[base]") {
  Scratch scratch;
  auto path = scratch / "metrics.jsonl";
  std::string whole = std::string(5000, 'a') + "\n";
  write_file_atomically(path, whole + std::string(9000, 'b'));
  {
    LineFile lines(path);
    CHECK(lines.bytes() == 5001);
  }
  CHECK(read_file(path) == whole);
  write_file_atomically(path, std::string(9000, 'b'));
  {
    LineFile lines(path);
    lines.append("c");
  }
  CHECK(read_file(path) == "c\n");
}
