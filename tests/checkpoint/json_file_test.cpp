#include "src/checkpoint/json_file.h"

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

TEST_CASE("JSON of a file that is damaged is refused with the file and the place", "[checkpoint]") {
  Scratch scratch;
  const auto path = scratch / "results.json";
  const auto message = [&](const std::string& bytes) {
    write_file_atomically(path, bytes);
    try {
      read_ordered_json_file(path);
    } catch (const FileError& error) {
      return std::string(error.what()).substr(path.string().size());
    }
    return std::string("accepted");
  };
  CHECK(message("{\"a\": [1, 2.5, \"\u00e4\"]}") == "accepted");
  CHECK_THAT(message("{\"a\": 1"), ContainsSubstring(": not JSON (parse error at line 1, column 8: "));
  CHECK_THAT(message(""), ContainsSubstring(": not JSON (parse error at line 1, column 1: "));
  CHECK_THAT(message("{}{}"), ContainsSubstring(": not JSON (parse error"));
  CHECK_THAT(message("{\"a\": \"\xFF\"}"), ContainsSubstring(": not JSON (parse error"));
  CHECK_THAT(message("{\"a\": 1e999}"), ContainsSubstring(": not JSON (number overflow parsing '1e999')"));
  CHECK(message("[1, 2]") == ": expected a JSON object, got [1,2]");
  CHECK(message("\"" + std::string(500, 'x') + "\"") ==
        ": expected a JSON object, got \"" + std::string(119, 'x') + "...");
}

TEST_CASE("JSON nested without end is refused before it ends the stack", "[checkpoint]") {
  std::string deep = "1";
  for (int i = 0; i < deepest_json; ++i) deep = i % 2 ? "[" + deep + "]" : "{\"a\":" + deep + "}";
  CHECK(parse_json(deep, "x").dump().size() == deep.size());
  CHECK_THROWS_WITH(parse_json("[" + deep + "]", "x"), "x: not JSON (nested deeper than 100)");
  CHECK_THROWS_WITH(parse_ordered_json(std::string(5'000'000, '['), "x"), "x: not JSON (nested deeper than 100)");
}

TEST_CASE("values in messages are cut between characters", "[checkpoint]") {
  CHECK(shown({1, "a"}) == "[1,\"a\"]");
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00e4";
  CHECK(shown(umlauts) == "\"" + umlauts.substr(0, 118) + "...");
}
