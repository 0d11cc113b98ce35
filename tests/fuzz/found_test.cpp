// What fuzzing found, each with its input (or one like it), so that it stays mended.
#include "modules/base/error.h"
#include "src/checkpoint/json_file.h"
#include "src/checkpoint/safetensors_header.h"
#include "src/spec/expression.h"
#include "src/spec/override.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"
#include "tools/fuzz/targets.h"

using namespace headlab;

namespace {

std::string header_error(const std::string& header, const std::string& data = "") {
  const auto bytes = fuzz::safetensors_bytes(header, data);
  std::size_t at = 0;
  try {
    read_safetensors_header(
        bytes.size(),
        [&](void* to, uint64_t count) {
          bytes.copy(static_cast<char*>(to), static_cast<std::size_t>(count), at);
          at += static_cast<std::size_t>(count);
        },
        "x");
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a header that nests without end is refused before printing it ends the stack", "[fuzz]") {
  const std::string deep(300'000, '[');
  CHECK(header_error("{\"a\":" + deep) == "x: the header is not JSON of a safetensors file: it nests deeper than 100");
  CHECK(header_error("{\"__metadata__\":{\"tied\":\"" + deep + "\"}}") ==
        "accepted");  // the word may mean something else
}

TEST_CASE("a tensor without elements may not have a shape whose strides overflow", "[fuzz]") {
  const auto entry = [](const std::string& shape) {
    return "{\"a\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[0,0]}}";
  };
  CHECK(header_error(entry("[0,64]")) == "accepted");
  CHECK_THAT(header_error(entry("[0,9223372036854775807,9223372036854775807]")), ContainsSubstring("is too large"));
  CHECK_THAT(header_error(entry("[4294967296,0,4294967296]")), ContainsSubstring("is too large"));
  std::string ones = "1";
  for (int i = 0; i < 70; ++i) ones += ",1";
  CHECK(header_error(entry("[" + ones + "]")) == "x: a: expected at most 64 dimensions, got 71");
}

TEST_CASE("names and values of a foreign header can't act on a terminal or fill it", "[fuzz]") {
  CHECK(header_error("{\"\\u001b[2J\":1}") ==
        "x: \"\\u001b[2J\": expected {\"dtype\": text, \"shape\": [numbers], \"data_offsets\": [begin, end]}, got 1");
  CHECK(header_error("{\"" + std::string(100'000, 'n') + "\":\"" + std::string(100'000, 'v') + "\"}").size() < 500);
  CHECK_THAT(header_error("{\"a\":\"\x7F\"}"), ContainsSubstring("got \"?\""));
  CHECK_THAT(header_error("{\"a\":{\"dtype\":\"\\u0007\",\"shape\":[],\"data_offsets\":[0,0]}}"),
             ContainsSubstring("unknown dtype \"\\u0007\""));
}

TEST_CASE("what the JSON parser read last is shown as text, and not all of it", "[fuzz]") {
  CHECK_THAT(header_error("{\"__metadata__\":{\"ti\xFF"),
             ContainsSubstring("the header is not JSON (parse error at line 1, column 21: ") &&
                 ContainsSubstring("last read: '\"ti?'"));
  CHECK(header_error("{\"" + std::string(100'000, 'x')).size() < 500);
}

TEST_CASE("a syntax error of a claim never cuts a character in two", "[fuzz]") {
  for (int before = 0; before < 24; ++before) {
    const auto text = "a " + std::string(static_cast<std::size_t>(before), 'x') + "\u00e4\u20ac\U0001F600";
    try {
      Expression::parse(text);
      FAIL("accepted");
    } catch (const UsageError& error) {
      CHECK(is_utf8(error.what()));
    }
  }
}

TEST_CASE("an override is named in one printable line, whatever was given", "[fuzz]") {
  auto document = Document::parse_text("{}", "x.json");
  const auto text = [&](const std::string& argument) {
    const auto mistakes = apply_overrides(document, {argument});
    return mistakes.empty() ? std::string("accepted") : mistakes[0].text();
  };
  CHECK(text("\x1b[2J") == "--set ?[2J: expected key.path=value");
  CHECK(text("a=\xFF") == "--set a=?: expected UTF-8");
  const std::string endless(5000, 'k');
  CHECK(text(endless + "[0]=1").size() < 1000);
  CHECK(text(endless + ".a[7].b=1").size() < 1000);
  CHECK(text(std::string(1000, 'x')) == "--set " + std::string(200, 'x') + "...: expected key.path=value");
}

TEST_CASE("a mistake deep within long keys is told in a line of a length that can be read", "[fuzz]") {
  std::string open, close;
  for (int i = 0; i < 90; ++i) {
    open += "{\"" + std::string(500, 'k') + "\":";
    close += "}";
  }
  const std::string text = "{\"sweep\":" + open + "{\"a\":1,\"a\":2}" + close + "}";
  toy::ToySpec spec;
  for (const auto& mistake : read(Document::parse_text(text, "x.json"), spec)) CHECK(mistake.text().size() < 1000);
  std::string keys = "{\"stages\":[{";
  for (int i = 0; i < 5000; ++i) keys += (i ? ",\"key" : "\"key") + std::to_string(i) + "\":1";
  const auto mistakes = read(Document::parse_text(keys + "}],\"model\":{\"vocabulary\":9}}", "x.json"), spec);
  REQUIRE(mistakes.size() == 1);
  CHECK_THAT(mistakes[0].message,
             ContainsSubstring("got \"key0\", \"key1\"") && ContainsSubstring("\"key9\", ... (5000 in all)"));
}
