#include "src/text/lines.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

struct File {
  explicit File(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string path() const { return (scratch / "text").string(); }
  Scratch scratch;
};

using Lines = std::vector<std::string>;

/// The same file with these bytes, its time of change put back.
void change(const std::string& path, const std::string& bytes, bool keep_time = false) {
  const auto time = std::filesystem::last_write_time(path);
  std::ofstream(path, std::ios::binary) << bytes;
  std::filesystem::last_write_time(path, keep_time ? time : time + std::chrono::seconds(1));
}

std::string drained(LineReader& reader) {
  std::string line;
  try {
    while (reader.next(line)) {}
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("only a line feed ends a line", "[text]") {
  CHECK(read_lines(File("a\vb\fc\rd\u2028e\u0085f\nsecond\n").path()) == Lines{"a\vb\fc\rd\u2028e\u0085f", "second"});
  CHECK(read_lines(File("a\n\nb").path()) == Lines{"a", "", "b"});
  CHECK(read_lines(File("a\n\n").path()) == Lines{"a", ""});
  CHECK(read_lines(File("").path()).empty());
  CHECK(read_lines(File("\n").path()) == Lines{""});
}

TEST_CASE("carriage returns before a line feed are dropped and counted", "[text]") {
  LineCounts counts;
  CHECK(read_lines(File("a\r\nb\nc\r\r\nd\r").path(), &counts) == Lines{"a", "b", "c\r", "d\r"});
  CHECK(counts.crlf == 2);
  CHECK(counts.lines == 4);
}

TEST_CASE("a byte order mark is dropped from the first line only", "[text]") {
  LineCounts counts;
  CHECK(read_lines(File("\uFEFFa\n\uFEFFb\n").path(), &counts) == Lines{"a", "\uFEFFb"});
  CHECK(counts.byte_order_mark);
  CHECK(read_lines(File("\uFEFF").path()).empty());
  CHECK(read_lines(File("\uFEFF\n").path()) == Lines{""});
}

TEST_CASE("faulty lines are counted and kept", "[text]") {
  LineCounts counts;
  const std::string nul(1, '\0');
  const std::string bytes = "good\n \t\u00a0\u3000\nn" + nul + "l\n\xFF\xFE\n\xFF" + nul + "\n\u00e4\n";
  CHECK(read_lines(File(bytes).path(), &counts).size() == 6);
  CHECK(counts.empty == 1);
  CHECK(counts.nul == 2);
  CHECK(counts.not_utf8 == 1);
}

TEST_CASE("a missing file and a folder are told apart", "[text]") {
  Scratch scratch;
  CHECK_THROWS_WITH(LineReader((scratch / "none").string()),
                    ContainsSubstring("none: cannot be read: no such file or folder"));
  CHECK_THROWS_WITH(LineReader(scratch.path.string()), ContainsSubstring("expected a text file, got a folder"));
}

TEST_CASE("a file that is changed while it is read is an error, whatever was changed", "[text]") {
  const File file("one\ntwo\n");
  const auto message = [&](const std::string& bytes, bool keep_time) {
    change(file.path(), "one\ntwo\n");
    LineReader reader(file.path());
    std::string line;
    REQUIRE(reader.next(line));
    change(file.path(), bytes, keep_time);
    return drained(reader);
  };
  CHECK(message("one\ntwo\nthree\n", true) ==
        file.path() +
            ": was changed while it was read (8 bytes when it was opened, 14 at its "
            "end); run again when nothing writes into it");
  CHECK_THAT(message("one\n", true), ContainsSubstring("(8 bytes when it was opened, 4 at its end)"));
  CHECK_THAT(message("", true), ContainsSubstring("was changed while it was read"));
  CHECK_THAT(message("ONE\nTWO\n", false),
             ContainsSubstring("(8 bytes when it was opened, 8 at its end)"));  // the time alone
  CHECK(message("one\ntwo\n", true).empty());
  // Another file under the same name leaves what is being read as it was.
  change(file.path(), "one\ntwo\n");
  LineReader reader(file.path());
  std::filesystem::remove(file.path());
  std::ofstream(file.path()) << "other";
  CHECK(drained(reader).empty());
  CHECK(reader.counts().lines == 2);
}

TEST_CASE("a line longer than the limit is counted, and the lines around it stay whole", "[text]") {
  const std::string longest(longest_line, 'x');
  LineCounts counts;
  const auto lines = read_lines(
      File("\uFEFF" + longest + "\r\na\n" + longest + "y\nb\n" + longest + longest + "\r\nc\r\n" + longest).path(),
      &counts);
  CHECK(counts.lines == 7);
  CHECK(counts.too_long == 2);
  CHECK(counts.crlf == 3);
  REQUIRE(lines.size() == 7);
  for (const std::size_t i : {0, 2, 4, 6}) CHECK(lines[i] == longest);
  CHECK(lines[1] == "a");
  CHECK(lines[3] == "b");
  CHECK(lines[5] == "c");
}

TEST_CASE("lines are the same wherever the reads of a file end", "[text]") {
  // Around 65536 bytes, the size of one read: a line feed, a CR before it, a byte order mark that is none, a character.
  for (std::size_t length = 65526; length <= 65540; ++length) {
    const std::string first(length, 'a');
    LineCounts counts;
    const auto lines = read_lines(File(first + "\u00e4\r\n\n\uFEFFb\r\n").path(), &counts);
    CHECK(lines == Lines{first + "\u00e4", "", "\uFEFFb"});
    CHECK(counts.crlf == 2);
    CHECK(counts.not_utf8 == 0);
  }
}

TEST_CASE("a pipe is read to its end", "[text]") {
  Scratch scratch;
  const auto path = (scratch / "pipe").string();
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(path) << "one\n" << std::flush << "two\n"; });
  CHECK(read_lines(path) == Lines{"one", "two"});
  writer.join();
}
