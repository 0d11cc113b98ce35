#include "src/text/lines.h"

#include <fstream>

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
  CHECK_THROWS_WITH(LineReader((scratch / "none").string()), ContainsSubstring("none: cannot be read: No such file"));
  CHECK_THROWS_WITH(LineReader(scratch.path.string()), ContainsSubstring("expected a text file, got a folder"));
}
