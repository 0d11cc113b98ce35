#include "src/spec/document.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "src/spec/mistakes.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"
#include "tests/spec/wrong_specs.h"

using namespace headlab;

namespace {

const Node& only(const Document& document) { return document.root().items.at(0); }
Document list_of(const std::string& text) { return Document::parse_text("[" + text + "]", "x.json"); }

}  // namespace

TEST_CASE("a document knows the place of each key and value") {
  auto document = Document::parse_text("{\n  \"ä\": {\"b\": [1,\n 22]},\r\n\t\"c\": null\n}", "x.json");
  CHECK(document.place("").text() == "x.json:1:1");
  CHECK(document.root().members[0].at.text() == "x.json:2:3");
  CHECK(document.root().members[0].value.members[0].value.items[1].at.text() == "x.json:3:2");
  CHECK(document.root().members[1].at.text() == "x.json:4:2");
  CHECK(document.place("c").text() == "x.json:4:7");
}

TEST_CASE("the place of what is left to a default is that of the innermost part that is written") {
  auto document = Document::parse_text("{\"a\": {\"b\": [1]}}", "x.json");
  CHECK(document.place("a.b[0]").text() == "x.json:1:14");
  CHECK(document.place("a.b[7].c").text() == "x.json:1:13");
  CHECK(document.place("a.x.y").text() == "x.json:1:7");
}

TEST_CASE("a byte order mark is skipped and is no column") {
  CHECK(Document::parse_text("\xEF\xBB\xBF{}", "x.json").root().at.text() == "x.json:1:1");
}

TEST_CASE("numbers that are integers are integers however they are written, exactly") {
  auto integer = [](const std::string& text) { return only(list_of(text)).integer; };
  CHECK(integer("9223372036854775807") == INT64_MAX);
  CHECK(integer("-9223372036854775808") == INT64_MIN);
  CHECK(integer("9007199254740993.0") == 9007199254740993);
  CHECK(integer("1e3") == 1000);
  CHECK(integer("1.50E+1") == 15);
  CHECK(integer("1200e-2") == 12);
  CHECK(integer("-0") == 0);
  CHECK(integer("0e999999999999999999999") == 0);
  CHECK(integer("1.5") == std::nullopt);
  CHECK(integer("9223372036854775808") == std::nullopt);
  CHECK(integer("1e19") == std::nullopt);
  CHECK(integer("1e-400") == std::nullopt);
}

TEST_CASE("numbers are the nearest doubles") {
  CHECK(only(list_of("0.1")).number == 0.1);
  CHECK(only(list_of("-2.5e-3")).number == -0.0025);
  CHECK(only(list_of("9223372036854775808")).number == 9223372036854775808.0);
  CHECK(only(list_of("1e-400")).number == 0);
  CHECK(only(list_of("5e-324")).number == 5e-324);
}

TEST_CASE("strings are decoded") {
  CHECK(only(list_of(R"("a\"\\\/\b\f\n\r\t\u00e4\u20ac\ud83d\ude00ß")")).text == "a\"\\/\b\f\n\r\tä€😀ß");
}

TEST_CASE("malformed UTF-8 is refused") {
  for (std::string bytes :
       {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\x80", "\xE2\x82"}) {
    CHECK_FALSE(is_utf8(bytes));
    CHECK_THROWS_AS(list_of("\"" + bytes + "\""), SpecErrors);
  }
  CHECK(is_utf8("aä€😀"));
}

TEST_CASE("a value without its places is the same JSON, in the order of its keys") {
  std::string text = R"({"z":[1,2.5,1e3,true,null,"ä"],"a":{"y":{},"b":[]}})";
  CHECK(to_json(Document::parse_text(text, "x").root()).dump() ==
        R"({"z":[1,2.5,1000.0,true,null,"ä"],"a":{"y":{},"b":[]}})");
}

TEST_CASE("a file that cannot be a spec is refused by name") {
  auto folder = std::filesystem::temp_directory_path() / "headlab_document_test";
  std::filesystem::create_directories(folder);
  auto message = [](const std::string& path) {
    try {
      Document::load(path);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  std::string missing = (folder / "missing.json").string(), large = (folder / "large.json").string();
  std::string sound = (folder / "sound.json").string();
  CHECK(message(missing) == missing + ": no such file");
  CHECK(message(folder.string()) == folder.string() + ": expected a spec file, got a folder");
  std::ofstream(large) << std::string(5 << 20, ' ');
  CHECK(message(large) == large + ": expected a spec of at most 4 MiB");
  std::ofstream(sound) << "{\"a\": 1}";
  CHECK(Document::load(sound).place("a").text() == sound + ":1:7");
  std::filesystem::remove_all(folder);
}

TEST_CASE("no text makes the parser or the reader crash, and each refusal has a place") {
  const std::string seed_text =
      R"({"name": "\u00e4x", "seeds": [1, 2e0], "model": {"vocabulary": 9, "attention": {"heads": 4,
    "position": {"type": "rope", "base": 50.5}, "gates": ["none", "rope"]}}, "stages": [{"train": {"steps": 20}},
    "evaluate"], "sweep": {"a": [null, true]}, "expect": [{"that": "mean(a.b) + 3", "at_least": "a"}]})";
  const std::string alphabet = "{}[]:,\"\\ntfu0123456789.eE+-/ \xC3\xA4\xFF()";
  std::mt19937 random(7);
  auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed_text;
    for (std::size_t edits = pick(4); edits-- > 0;) {
      std::size_t at = pick(text.size());
      switch (pick(4)) {
        case 0:
          text.erase(at, 1 + pick(5));
          break;
        case 1:
          text.insert(at, 1, alphabet[pick(alphabet.size())]);
          break;
        case 2:
          text[at] = alphabet[pick(alphabet.size())];
          break;
        default:
          text.insert(at, text.substr(pick(text.size()), pick(30)));
          break;
      }
    }
    std::string message = refusal<toy::ToySpec>(text);
    message == "accepted" ? ++accepted : ++refused;
    if (message != "accepted" && message.rfind("x.json:", 0) != 0) FAIL(message);
  }
  CHECK(accepted > 100);
  CHECK(refused > 1000);
}

TEST_CASE("large texts are read in time that grows with their size only") {
  std::string keys = "{";
  for (int i = 0; i < 50'000; ++i) keys += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  auto document = Document::parse_text(keys + "}", "x.json");
  CHECK(document.root().members.size() == 50'000);
  CHECK(to_json(document.root()).size() == 50'000);
  CHECK_THROWS_AS(list_of(std::string(1'000'000, '7')), SpecErrors);
  CHECK(only(list_of("\"" + std::string(1'000'000, '7') + "\"")).text.size() == 1'000'000);
}
