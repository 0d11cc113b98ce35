#include "src/terminal/table.h"

#include <sstream>

#include "src/terminal/format.h"
#include "tests/catch.h"

using namespace headlab;

TEST_CASE("a table lines text up left and numbers right", "[terminal]") {
  Table table{{"head", "BLEU", "change"},
              {{"enc.self.0.3", "78.4", "-0.1"}, {"dec.cross.1.3", "47.2", "-31.2"}, {"ä"}}};
  CHECK(table.text(80) ==
        "  head           BLEU  change\n"
        "  enc.self.0.3   78.4    -0.1\n"
        "  dec.cross.1.3  47.2   -31.2\n"
        "  ä\n");
  CHECK(Table{{"a"}, {}}.text(80).empty());
}

TEST_CASE("a table fits the width by cutting text, never numbers", "[terminal]") {
  Table table{{"claim", "value", "why"},
              {{std::string(50, 'a'), "123456789.123", std::string(30, 'b')}, {"short", "1", "日本語日本語日本語"}}};
  for (int64_t columns : {100, 60, 45, 33}) {
    CAPTURE(columns);
    std::istringstream lines(table.text(columns, 0));
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= columns);
    CHECK_THAT(table.text(columns), ContainsSubstring("123456789.123"));
  }
  CHECK_THAT(table.text(10), ContainsSubstring("aaaaaaa…  123456789.123  bbbbbbb…"));
}
