#include "src/text/word_piece.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "src/data/tokenizers.h"
#include "src/text/basic_tokens.h"
#include "src/text/unicode.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;
using Ids = std::vector<int64_t>;

Lines basic(const std::string& text, bool lower_case) {
  Lines words;
  for (const auto& word : basic_tokens(decode_utf8(text), lower_case)) words.push_back(encode_utf8(word));
  return words;
}

std::string joined(const Lines& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TokenizerOptions options(int64_t vocabulary, bool lower_case = false) {
  TokenizerOptions result;
  result.type = "wordpiece";
  result.vocabulary = vocabulary;
  result.lower_case = lower_case;
  return result;
}

const nlohmann::json& golden() {
  static const nlohmann::json json = [] {
    std::ifstream file(test::in_source("tests/golden/wordpiece.json"));
    return nlohmann::json::parse(file);
  }();
  return json;
}

/// Sentences of made-up words, with capitals, umlauts and punctuation.
const Lines& text() {
  static const Lines lines = [] {
    Random random(11);
    const Lines syllables = {"ba", "do", "ki", "lu", "mö", "ne", "pra", "schu", "tä", "wei", "zo", "Gri", "fel", "hun"};
    const auto syllable = [&] { return syllables[random.below(syllables.size())]; };
    Lines words;
    for (int i = 0; i < 200; ++i) words.push_back(syllable() + syllable() + (random.below(2) ? syllable() : ""));
    Lines result;
    for (int i = 0; i < 300; ++i) {
      std::string line;
      for (uint64_t n = 3 + random.below(8); n > 0; --n)
        line += words[random.below(words.size())] + (n == 1 ? "." : random.below(6) == 0 ? ", " : " ");
      result.push_back(line);
    }
    return result;
  }();
  return lines;
}

}  // namespace

TEST_CASE("basic tokens and WordPiece ids are those of the reference, for ordinary and odd texts", "[text]") {
  const auto vocabulary = golden().at("vocabulary").get<Lines>();
  REQUIRE(golden().at("rows").size() > 300);
  for (const bool lower_case : {false, true}) {
    const WordPiece model(vocabulary, lower_case, "golden");
    for (const auto& row : golden().at("rows")) {
      const auto line = row.at("text").get<std::string>();
      const auto& expected = row.at(lower_case ? "lower" : "cased");
      CAPTURE(line, lower_case);
      CHECK(basic(line, lower_case) == expected.at("tokens").get<Lines>());
      CHECK(model.encode(line) == expected.at("ids").get<Ids>());
    }
  }
}

TEST_CASE("the longest piece wins, from the left, and a word that can't be cut is unknown", "[text]") {
  const WordPiece model(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "una", "##a", "##aff", "##able", "##ffa", "##ble", "x"}, false,
      "test");
  CHECK(model.pieces("unaffable") == Lines{"una", "##ffa", "##ble"});  // not un ##aff ##able, which would do as well
  CHECK(model.pieces("unaff x") == Lines{"[UNK]", "x"});               // greedy: una leaves ##ff, which there is not
  CHECK(model.pieces("unz una") == Lines{"[UNK]", "una"});
  CHECK(model.encode("").empty());
  CHECK(model.encode(" \t\n").empty());
  CHECK(model.encode("\U0001F600") == Ids{1});
}

TEST_CASE("a WordPiece vocabulary keeps its ids, and missing special ones come after its pieces", "[text]") {
  const WordPiece own({"[PAD]", "a", "[UNK]", "[CLS]", "[SEP]"}, false, "test");
  CHECK(own.pad() == 0);
  CHECK(own.unk() == 2);
  CHECK(own.bos() == 3);
  CHECK(own.eos() == 4);
  CHECK(own.size() == 5);
  const WordPiece few({"a", "[UNK]", "[SEP]"}, false, "test");
  CHECK(few.pad() == 3);
  CHECK(few.bos() == 4);
  CHECK(few.eos() == 2);
  CHECK(few.size() == 5);
  CHECK(few.piece(4) == "[CLS]");
  CHECK(few.decode({4, 0, 2, 3}) == "a");
  CHECK(few.decode({0, 1, 0}) == "a \u2047 a");
}

TEST_CASE("WordPiece vocabularies that are none are refused with the place", "[text]") {
  Scratch scratch;
  const auto file = [&](const std::string& bytes) {
    const auto path = (scratch / "vocab.txt").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  CHECK_THROWS_WITH(load_word_piece(file("a\nb\n"), false),
                    ContainsSubstring("vocab.txt: not a WordPiece vocabulary: expected a piece \"[UNK]\" among its 2"));
  CHECK_THROWS_WITH(load_word_piece(file("[UNK]\na\nb\na\n"), false),
                    ContainsSubstring("vocab.txt: expected each piece once, got \"a\" at 1 and 3"));
  CHECK_THROWS_WITH(load_word_piece(file("[UNK]\n\xFF\n"), false),
                    ContainsSubstring("vocab.txt: piece 1: expected UTF-8"));
  CHECK_THROWS_AS(load_word_piece((scratch / "none").string(), false), FileError);
  for (const char* bytes : {"{", "{}", R"({"tokenizer": "bpe", "format": 1, "lower_case": true, "vocabulary": []})"})
    CHECK_THROWS_AS(Tokenizer::from_bytes(bytes), FileError);
  for (const char* bytes : {R"({"tokenizer": "wordpiece"})",
                            R"({"tokenizer": "wordpiece", "format": 1, "lower_case": true, "vocabulary": [1]})"})
    CHECK_THROWS_WITH(Tokenizer::from_bytes(bytes), "tokenizer: not a WordPiece tokenizer as headlab writes it");
  CHECK_THROWS_WITH(
      Tokenizer::from_bytes(R"({"tokenizer": "wordpiece", "format": 2, "lower_case": true, "vocabulary": ["[UNK]"]})"),
      ContainsSubstring("format 2; this headlab reads format 1: update headlab"));
  const auto crlf = load_word_piece(file("[UNK]\r\nab\r\n##c\r\n"), false);  // written on another system
  CHECK(crlf->encode("abc") == Ids{1, 2});
}

TEST_CASE(
    "a trained WordPiece has the special pieces, the characters and joins, and every line comes back as its tokens",
    "[text]") {
  for (const bool lower_case : {false, true}) {
    const Tokenizer tokenizer = Tokenizer::train(text(), options(250, lower_case), 1);
    CHECK(tokenizer.kind() == "wordpiece");
    CHECK(tokenizer.size() == 250);
    CHECK(tokenizer.pad_id() == 0);
    CHECK(tokenizer.unk_id() == 1);
    CHECK(tokenizer.bos_id() == 2);
    CHECK(tokenizer.eos_id() == 3);
    std::set<std::string> pieces;
    for (int64_t i = 0; i < tokenizer.size(); ++i) {
      pieces.insert(tokenizer.piece(i));
      CHECK(tokenizer.id(tokenizer.piece(i)) == i);
    }
    CHECK(pieces.size() == 250);
    for (const auto& line : text()) {
      const auto ids = tokenizer.encode(line);
      const auto back = tokenizer.decode(ids);
      REQUIRE(back == joined(basic(line, lower_case)));
      REQUIRE(tokenizer.encode(back) == ids);
      REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.unk_id()) == 0);
    }
    const auto foreign = tokenizer.encode("\u65e5\u672c abba");
    CHECK(std::count(foreign.begin(), foreign.end(), tokenizer.unk_id()) >= 2);
  }
}

TEST_CASE("the join that raises the likelihood of the text most is made first", "[text]") {
  // The text's pieces are listed and every pair tried: log-likelihood of the pieces under their own frequencies.
  const Lines lines = {"abab abab abab cd cd ce", "ab abc abd cd cdcd ababab aaaa aaa"};
  std::map<std::string, int64_t> words;
  for (const auto& line : lines)
    for (const auto& word : basic(line, false)) ++words[word];
  const auto pieces_of = [&](const std::string& word, const std::vector<std::pair<std::string, std::string>>& joins) {
    Lines pieces;
    for (std::size_t i = 0; i < word.size(); ++i) pieces.push_back((i ? "##" : "") + word.substr(i, 1));
    for (const auto& [a, b] : joins) {
      Lines next;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool here = i + 1 < pieces.size() && pieces[i] == a && pieces[i + 1] == b;
        next.push_back(here ? a + b.substr(2) : pieces[i]);
        i += here;
      }
      pieces = next;
    }
    return pieces;
  };
  const auto likelihood = [&](const std::vector<std::pair<std::string, std::string>>& joins) {
    std::map<std::string, double> counts;
    double total = 0, sum = 0;
    for (const auto& [word, count] : words)
      for (const auto& piece : pieces_of(word, joins)) {
        counts[piece] += static_cast<double>(count);
        total += static_cast<double>(count);
      }
    for (const auto& [piece, count] : counts) sum += count * std::log(count / total);
    return sum;
  };
  std::vector<std::pair<std::string, std::string>> joins;
  CHECK(Tokenizer::train(lines, options(11), 1).size() == 11);  // a c ##a ##b ##c ##d ##e, and the special ones
  CHECK_THROWS_WITH(Tokenizer::train(lines, options(10), 1),
                    "vocabulary 10 is less than the characters of the text need (min 11); lower character_coverage "
                    "leaves out rare characters");
  for (int64_t size = 12; size <= 16; ++size) {
    std::set<std::pair<std::string, std::string>> pairs;
    for (const auto& [word, count] : words) {
      const auto pieces = pieces_of(word, joins);
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) pairs.insert({pieces[i], pieces[i + 1]});
    }
    double best = -1e300;
    std::pair<std::string, std::string> chosen;
    for (const auto& pair : pairs) {
      auto with = joins;
      with.push_back(pair);
      if (const auto value = likelihood(with); value > best + 1e-9) {
        best = value;
        chosen = pair;
      }
    }
    joins.push_back(chosen);
    const auto tokenizer = Tokenizer::train(lines, options(size), 1);
    CHECK(tokenizer.piece(size - 1) == chosen.first + chosen.second.substr(2));
  }
}

TEST_CASE("a WordPiece vocabulary that the text does not support is refused with a limit that works", "[text]") {
  std::string message;
  try {
    Tokenizer::train(text(), options(80000), 1);
  } catch (const Error& error) {
    message = error.what();
  }
  REQUIRE(message.rfind("vocabulary 80000 is more than the text supports (max ", 0) == 0);
  const int64_t most = std::stoll(message.substr(message.find("max ") + 4));
  CHECK(Tokenizer::train(text(), options(most), 1).size() == most);
  CHECK_THROWS_WITH(Tokenizer::train(text(), options(10), 1),
                    ContainsSubstring("vocabulary 10 is less than the characters of the text need (min "));
  CHECK_THROWS_WITH(Tokenizer::train({"\u200b"}, options(10), 1),
                    ContainsSubstring("expected words, got 1 lines without one"));
}

TEST_CASE("rare characters that the coverage leaves out make their words unknown", "[text]") {
  Lines lines(99, "aaaaaaaaaa bbbbbbbbbb");
  lines.push_back("zab");
  auto rare = options(14);
  rare.character_coverage = 0.99;
  const Tokenizer tokenizer = Tokenizer::train(lines, rare, 1);
  CHECK(tokenizer.encode("z") == Ids{tokenizer.unk_id()});
  rare.character_coverage = 1;
  CHECK(Tokenizer::train(lines, rare, 1).pieces("z") == Lines{"z"});
}

TEST_CASE("a WordPiece is the same after saving and loading, as a run saves it and as a vocab.txt", "[text]") {
  const Tokenizer trained = Tokenizer::train(text(), options(200, true), 1);
  CHECK(trained.serialized() == Tokenizer::train(text(), options(200, true), 9).serialized());
  const Tokenizer restored = Tokenizer::from_bytes(trained.serialized());
  Scratch scratch;
  const auto saved = (scratch / "tokenizer.model").string(), vocabulary = (scratch / "vocab.txt").string();
  std::ofstream(saved, std::ios::binary) << trained.serialized();
  {
    std::ofstream file(vocabulary, std::ios::binary);
    for (int64_t i = 0; i < trained.size(); ++i) file << trained.piece(i) << "\n";
  }
  auto from_file = options(5, true);
  from_file.model = vocabulary;
  const auto pair = make_tokenizers(from_file, {}, {}, "", 1);
  CHECK(pair.joint);
  CHECK(restored.serialized() == trained.serialized());
  CHECK(pair.source.serialized() == trained.serialized());
  CHECK(Tokenizer::load(saved).serialized() == trained.serialized());
  CHECK(Tokenizer::load(saved, from_file).serialized() == trained.serialized());
  for (const auto& line : text()) {
    REQUIRE(restored.encode(line) == trained.encode(line));
    REQUIRE(pair.target.encode(line) == trained.encode(line));
  }
}
