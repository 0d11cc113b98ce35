// What each kind of token promises: round trips, unknown words, exact vocabularies, the ids of the reference library.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "src/data/grammar/grammar.h"
#include "src/text/tokenizer.h"
#include "src/text/unicode.h"
#include "tests/catch.h"
#include "tests/support/places.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;
using Ids = std::vector<int64_t>;

/// English and German sentences of the grammar.
const Lines& sentences() {
  static const Lines lines = [] {
    grammar::GrammarOptions options;
    options.train = 600;
    options.valid = options.test = 20;
    Lines all;
    for (const auto& split : grammar::generate(options).splits)
      for (const auto& example : split.examples) {
        all.push_back(example.source);
        all.push_back(example.target);
      }
    return all;
  }();
  return lines;
}

TokenizerOptions options(const std::string& type, int64_t vocabulary) {
  TokenizerOptions result;
  result.type = type;
  result.vocabulary = vocabulary;
  return result;
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 255));
  }
  return bytes;
}

const nlohmann::json& golden() {
  static const nlohmann::json json = [] {
    std::ifstream file(test::in_source("tests/golden/sentencepiece.json"));
    return nlohmann::json::parse(file);
  }();
  return json;
}

void compare(const Tokenizer& tokenizer, const nlohmann::json& rows) {
  REQUIRE(rows.size() > 30);
  for (const auto& row : rows) {
    const auto text = row.at("text").get<std::string>();
    const auto ids = row.at("ids").get<Ids>();
    CAPTURE(text);
    CHECK(tokenizer.encode(text) == ids);
    CHECK(tokenizer.decode(ids) == row.at("decoded").get<std::string>());
  }
}

}  // namespace

TEST_CASE("every line of the grammar comes back from its ids: words, characters, subwords", "[text]") {
  for (const auto& [type, vocabulary] :
       std::vector<std::pair<std::string, int64_t>>{{"word", 5000}, {"char", 5000}, {"bpe", 500}, {"unigram", 500}}) {
    CAPTURE(type);
    const auto tokenizer = Tokenizer::train(sentences(), options(type, vocabulary), 1);
    for (const auto& line : sentences()) {
      const auto ids = tokenizer.encode(line);
      REQUIRE(tokenizer.decode(ids) == line);
      REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.unk_id()) == 0);
    }
  }
}

TEST_CASE("a word token is what stands between white space, and a word that was never seen is the unknown id",
          "[text]") {
  const auto tokenizer = Tokenizer::train({"the dog sleeps", "a cat  sees the dog."}, options("word", 100), 1);
  CHECK(tokenizer.size() == 4 + 7);  // the dog sleeps a cat sees dog.
  CHECK(tokenizer.encode("the cat sleeps").size() == 3);
  const auto unknown = tokenizer.encode("the bird sleeps dog,");
  REQUIRE(unknown.size() == 4);
  CHECK(unknown[0] == tokenizer.encode("the")[0]);
  CHECK(unknown[1] == tokenizer.unk_id());
  CHECK(unknown[2] == tokenizer.encode("sleeps")[0]);
  CHECK(unknown[3] == tokenizer.unk_id());
}

TEST_CASE("the vocabulary of character tokens is the distinct characters and the special pieces", "[text]") {
  const auto tokenizer = Tokenizer::train(sentences(), options("char", 5000), 1);
  std::set<std::string> expected{tokenizer.piece(0), tokenizer.piece(1), tokenizer.piece(2), tokenizer.piece(3),
                                 "\u2581"};
  for (const auto& line : sentences())
    for (const char32_t c : decode_utf8(line))
      if (c != U' ') expected.insert(encode_utf8(std::u32string(1, c)));
  std::set<std::string> pieces;
  for (int64_t id = 0; id < tokenizer.size(); ++id) pieces.insert(tokenizer.piece(id));
  CHECK(pieces == expected);
  CHECK(static_cast<int64_t>(expected.size()) == tokenizer.size());
  const std::string line = sentences()[0];
  CHECK(tokenizer.encode(line).size() == decode_utf8(line).size() + 1);  // a space before the first word
}

TEST_CASE("a script that was never seen becomes unknown ids, or bytes, in every kind of token", "[text]") {
  const std::string foreign = "\u0448\u043a\u043e\u043b\u0430 \u65e5\u672c\u8a9e \U0001F600";
  for (const std::string type : {"word", "char", "bpe", "unigram", "wordpiece"}) {
    CAPTURE(type);
    const auto tokenizer =
        Tokenizer::train(sentences(), options(type, type == "word" || type == "char" ? 5000 : 500), 1);
    for (const auto id : tokenizer.encode(foreign))
      CHECK((id == tokenizer.unk_id() || tokenizer.piece(id) == "\u2581"));
    CHECK_FALSE(tokenizer.encode(foreign).empty());
    CHECK_NOTHROW(tokenizer.decode(tokenizer.encode(foreign)));
  }
  for (const std::string type : {"bpe", "unigram"}) {
    auto bytes = options(type, 700);
    bytes.byte_fallback = true;
    const auto tokenizer = Tokenizer::train(sentences(), bytes, 1);
    const auto ids = tokenizer.encode(foreign);
    CHECK(std::count(ids.begin(), ids.end(), tokenizer.unk_id()) == 0);
    CHECK(tokenizer.decode(ids) == foreign);
  }
}

TEST_CASE("the same model file gives the ids that the reference library gives", "[text]") {
  REQUIRE(golden().at("models").size() == 7);
  for (const auto& model : golden().at("models")) {
    INFO(model.at("type") << " " << model.at("options"));
    compare(Tokenizer::from_bytes(from_base64(model.at("model"))), model.at("rows"));
  }
}

TEST_CASE("real model files give the ids that the reference library gives", "[text]") {
  const char* data = std::getenv("HEADLAB_DATA");
  for (const auto& file : golden().at("files")) {
    const auto path = std::filesystem::path(data ? data : "") / file.at("file").get<std::string>();
    if (!data || !std::filesystem::exists(path)) {
      WARN("skipped: no " << file.at("file") << " in HEADLAB_DATA");
      continue;
    }
    INFO(path);
    compare(Tokenizer::load(path.string()), file.at("rows"));
  }
}
