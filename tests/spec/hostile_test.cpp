// Specs that nobody would write: each is refused with a message, before the stack, the memory or the patience ends.
#include <nlohmann/json.hpp>

#include "src/spec/expect.h"
#include "src/spec/expression.h"
#include "src/spec/override.h"
#include "src/spec/path.h"
#include "src/spec/reader.h"
#include "src/spec/sweep.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;

namespace {

std::string chain(std::size_t steps) {
  std::string path = "a";
  for (std::size_t i = 1; i < steps; ++i) path += ".a";
  return path;
}

std::string refused(const std::string& text) {
  try {
    toy::ToySpec spec;
    read_or_throw(Document::parse_text(text, "x.json"), spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string wrong_sweep(const std::string& text) {
  try {
    expand(Document::parse_text(text, "x.json"));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// A spec with this value for a key that takes a number.
std::string base(const std::string& value) {
  return refused(R"({"model": {"vocabulary": 9, "attention": {"position": {"type": "rope", "base": )" + value + "}}}}");
}

}  // namespace

TEST_CASE("a key path of many steps is refused, where it was written") {
  CHECK(parse_path(chain(100)).size() == 100);
  CHECK(parse_path(chain(101)).empty());
  CHECK(parse_path("a" + std::string(40'000, '[')).empty());
  auto document = Document::parse_text("{}", "x.json");
  const auto mistakes = apply_overrides(document, {chain(60'000) + "=1"});
  REQUIRE(mistakes.size() == 1);
  CHECK_THAT(mistakes[0].message, ContainsSubstring("expected a key path such as model.width"));
  CHECK(to_json(document.root()).dump() == "{}");
  CHECK_THAT(wrong_sweep("{\"sweep\": {\"" + chain(500'000) + "\": [1, 2]}}"),
             ContainsSubstring("expected a key path such as model.width"));
}

TEST_CASE("nesting without end is refused at its place") {
  for (const std::string& open : {std::string("["), std::string("{\"a\":")}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += open;
    const auto message = refused(text);
    CHECK_THAT(message, ContainsSubstring("x.json:1:" + std::to_string(101 * open.size() + 1) +
                                          ": syntax error: nested deeper than 100"));
  }
}

TEST_CASE("a sweep whose runs would fill the memory is refused with its size") {
  std::string numbers = "0", runs = "0";
  for (int i = 1; i < 5000; ++i) numbers += "," + std::to_string(i);
  for (int i = 1; i < 5000; ++i) runs += "," + std::to_string(i);
  CHECK_THAT(
      wrong_sweep("{\"numbers\": [" + numbers + "], \"sweep\": {\"model.vocabulary\": [" + runs + "]}}"),
      ContainsSubstring("x.json:1:") &&
          ContainsSubstring(
              "sweep: expected a smaller sweep: 5000 runs of a spec with 5002 values are too many to hold at once"));
  CHECK(
      expand(Document::parse_text("{\"numbers\": [1, 2], \"sweep\": {\"model.vocabulary\": [" + runs + "]}}", "x.json"))
          .size() == 5000);
}

TEST_CASE("a name of a claim that is far too long is refused before the run") {
  CHECK_NOTHROW(Expression::parse(std::string(1000, 'a')));
  CHECK_THROWS_WITH(Expression::parse("1 + " + chain(501)),
                    "syntax error at character 5: expected a name of at most 1000 characters, got 1001");
  CHECK_THROWS_WITH(Expression::parse(std::string(2'000'000, 'a')),
                    "syntax error at character 1: expected a name of at most 1000 characters, got 2000000");
  // What is allowed is looked up without growing: as many parts as a name can have, among results that nest as deep.
  auto results = nlohmann::ordered_json::object();
  auto* at = &results;
  for (int i = 0; i < 99; ++i) at = &(*at)["a"];
  (*at)["a"] = 7;
  CHECK(Expression::parse(chain(100)).evaluate(results) == 7);
  CHECK_THROWS_WITH(Expression::parse(chain(500)).evaluate(results), ContainsSubstring("is not among the results"));
}

TEST_CASE("numbers at and beyond the ends of what a double or an integer holds") {
  CHECK(base("50.5") == "accepted");
  for (const char* large : {"1e999", "-1e999", "1e100000000000000000000", "123456789e301"})
    CHECK_THAT(base(large), ContainsSubstring("syntax error: the number is too large"));
  for (const char* tiny : {"1e-999", "-0", "-0.0", "0e999", "0.0e-99999999999999999999"})
    CHECK_THAT(base(tiny), ContainsSubstring("base: expected a number above 1"));
  for (const char* none : {"NaN", "Infinity", "-Infinity", "nan", "inf", "+1", "0x10", "1_000", ".5", "5.", "1e", "01",
                           "--1", "1.2.3", "1e5.5"})
    CHECK_THAT(base(none), ContainsSubstring("x.json:1:") && ContainsSubstring("syntax error: "));
  const auto heads = [](const std::string& value) {
    return refused(R"({"model": {"vocabulary": 9, "attention": {"heads": )" + value + "}}}");
  };
  CHECK(heads("8.0") == "accepted");
  CHECK(heads("0.8e1") == "accepted");
  for (const char* wrong : {"9223372036854775808", "-9223372036854775809", "1e300", "8.5", "1e-1", "-8", "0", "65"})
    CHECK_THAT(heads(wrong), ContainsSubstring("model.attention.heads: expected an integer in [1, 64]"));
}

TEST_CASE("strings that JSON does not have are refused at their place") {
  const auto name = [](const std::string& text) {
    return refused("{\"model\": {\"vocabulary\": 9}, \"name\": \"" + text + "\"}");
  };
  CHECK(name("\\ud83d\\ude00") == "accepted");
  CHECK(name(std::string(3 << 20, 'x')) == "accepted");
  for (const char* lone :
       {"\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\ud83d", "\\ud83d\\u0041", "\\ude00\\ud83d"})
    CHECK_THAT(name(lone), ContainsSubstring("x.json:1:39: syntax error: half of a surrogate pair"));
  for (const char* escape : {"\\x41", "\\'", "\\u12", "\\u12G4", "\\U0041", "\\0"})
    CHECK_THAT(name(escape), ContainsSubstring("x.json:1:39: syntax error: "));
  for (const std::string bytes : {"\xFF", "\xC0\x80", "\xED\xA0\xBD", "\xE2\x82", "\xF5\x80\x80\x80"})
    CHECK_THAT(name(bytes), ContainsSubstring("x.json:1:39: syntax error: a byte that is not UTF-8"));
  for (const std::string& control : {std::string("\t"), std::string(1, '\0'), std::string("\x1b[2J")})
    CHECK_THAT(name(control), ContainsSubstring("syntax error: a control character in a string"));
}

TEST_CASE("a message never carries a control character or more than a line of what was written") {
  const std::string odd = "\\u001b[2J\\u0007\\u0000" + std::string(100'000, 'y');
  for (const std::string& text :
       {"{\"" + odd + "\": 1}", "{\"name\": {\"" + odd + "\": 1}}",
        "{\"model\": {\"attention\": {\"position\": \"" + odd + "\"}}}", "{\"languages\": [\"" + odd + "\"]}",
        "{\"expect\": [{\"that\": \"" + odd + "\", \"at_least\": 1}]}"}) {
    const auto message = refused(text);
    CHECK(message != "accepted");
    CHECK(message.size() < 2000);
    CHECK(std::none_of(message.begin(), message.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));
  }
}
