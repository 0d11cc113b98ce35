#include "src/text/tokenizer.h"

#include <sentencepiece_trainer.h>

#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <set>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;

/// Sentences of a few hundred made-up words, umlauts and punctuation included.
const Lines& text() {
  static const Lines lines = [] {
    Random random(11);
    const Lines syllables = {"ba", "do", "ki", "lu", "mö", "ne", "pra", "schu", "tä", "wei", "zo", "gri", "fel", "hun"};
    const auto syllable = [&] { return syllables[random.below(syllables.size())]; };
    Lines words;
    for (int i = 0; i < 300; ++i) words.push_back(syllable() + syllable() + (random.below(2) ? syllable() : ""));
    Lines result;
    for (int i = 0; i < 600; ++i) {
      std::string line;
      for (uint64_t n = 3 + random.below(8); n > 0; --n) {
        line += words[random.below(words.size())] + (n == 1 ? "." : random.below(6) == 0 ? ", " : " ");
      }
      result.push_back(line);
    }
    return result;
  }();
  return lines;
}

TokenizerOptions options(const std::string& type, int64_t vocabulary) {
  TokenizerOptions result;
  result.type = type;
  result.vocabulary = vocabulary;
  return result;
}

const Lines types = {"unigram", "bpe", "word", "char"};

/// What is written to the standard error of the process while `body` runs.
template <class Body>
std::string stderr_of(Body body) {
  Scratch scratch;
  const std::string path = (scratch / "stderr").string();
  std::fflush(stderr);
  const int before = dup(2);
  std::FILE* file = std::fopen(path.c_str(), "w");
  dup2(fileno(file), 2);
  body();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::fclose(file);
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OneByOne : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return at_ == text().size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return text()[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::size_t at_ = 0;
};

/// A model as SentencePiece makes it by default, with other special ids than ours.
std::string foreign_model(int bos, int eos) {
  OneByOne lines;
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"model_type", "bpe"},
                                                                  {"vocab_size", "200"},
                                                                  {"minloglevel", "2"},
                                                                  {"unk_id", "0"},
                                                                  {"bos_id", std::to_string(bos)},
                                                                  {"eos_id", std::to_string(eos)},
                                                                  {"pad_id", "-1"}},
                                                                 &lines, &bytes);
  REQUIRE(status.ok());
  return bytes;
}

}  // namespace

TEST_CASE("every line of the training text comes back from its ids", "[text]") {
  for (const std::string& type : types) {
    const Tokenizer tokenizer = Tokenizer::train(text(), options(type, type == "word" ? 2000 : 250), 1);
    CAPTURE(type);
    for (const std::string& line : text()) REQUIRE(tokenizer.decode(tokenizer.encode(line)) == line);
  }
}

TEST_CASE("trained models have pad 0, unk 1, bos 2, eos 3 and the vocabulary asked for", "[text]") {
  for (const std::string& type : types) {
    const Tokenizer tokenizer = Tokenizer::train(text(), options(type, 250), 1);
    CAPTURE(type);
    CHECK(tokenizer.pad_id() == 0);
    CHECK(tokenizer.unk_id() == 1);
    CHECK(tokenizer.bos_id() == 2);
    CHECK(tokenizer.eos_id() == 3);
    CHECK((type == "char" ? tokenizer.size() < 40 : tokenizer.size() == 250));
    std::set<std::string> pieces;
    for (int64_t i = 0; i < tokenizer.size(); ++i) {
      pieces.insert(tokenizer.piece(i));
      CHECK(tokenizer.id(tokenizer.piece(i)) == i);
    }
    CHECK(static_cast<int64_t>(pieces.size()) == tokenizer.size());
  }
}

TEST_CASE("training twice gives the same bytes, and says nothing", "[text]") {
  for (const std::string& type : types) {
    CAPTURE(type);
    std::string first, second;
    const std::string said = stderr_of([&] {
      first = Tokenizer::train(text(), options(type, 200), 1).serialized();
      second = Tokenizer::train(text(), options(type, 200), 2).serialized();
    });
    CHECK(first == second);
    CHECK(said.empty());
  }
}

TEST_CASE("the seed chooses the sentences that max_sentences leaves", "[text]") {
  TokenizerOptions few = options("bpe", 100);
  few.max_sentences = 50;
  const std::string one = Tokenizer::train(text(), few, 1).serialized();
  CHECK(one == Tokenizer::train(text(), few, 1).serialized());
  CHECK(one != Tokenizer::train(text(), few, 2).serialized());
}

TEST_CASE("a vocabulary that the text does not support is refused with its limit", "[text]") {
  for (const char* type : {"unigram", "bpe"}) {
    CAPTURE(type);
    CHECK_THROWS_WITH(Tokenizer::train(text(), options(type, 8000), 1),
                      ContainsSubstring("vocabulary 8000 is more than the text supports (max "));
    CHECK_THROWS_WITH(Tokenizer::train(text(), options(type, 12), 1),
                      ContainsSubstring("vocabulary 12 is less than the characters of the text need (min "));
  }
  CHECK_THROWS_WITH(Tokenizer::train({"", " \t", "\xFF"}, options("bpe", 100), 1),
                    ContainsSubstring("expected text, got 3 lines of which none is usable"));
}

TEST_CASE("the limit that is named is one that works", "[text]") {
  for (const char* type : {"unigram", "bpe"}) {
    std::string message;
    try {
      Tokenizer::train(text(), options(type, 8000), 1);
    } catch (const Error& error) {
      message = error.what();
    }
    const int64_t most = std::stoll(message.substr(message.find("max ") + 4));
    CAPTURE(type, most);
    CHECK(Tokenizer::train(text(), options(type, most), 1).size() == most);
    CHECK_THROWS_AS(Tokenizer::train(text(), options(type, most + 1), 1), Error);
  }
}

TEST_CASE("unknown characters become unk or bytes, never an error", "[text]") {
  const std::string foreign = "\u65e5\u672c \U0001F600";
  for (const std::string& type : types) {
    CAPTURE(type);
    const Tokenizer tokenizer = Tokenizer::train(text(), options(type, 250), 1);
    const std::vector<int64_t> ids = tokenizer.encode(foreign);
    CHECK(std::count(ids.begin(), ids.end(), tokenizer.unk_id()) >= 1);
    CHECK_THAT(tokenizer.decode(ids), ContainsSubstring("\u2047"));
    CHECK_NOTHROW(tokenizer.encode(std::string("\xFF\xFE a\0b", 6)));
    CHECK(tokenizer.encode("").empty());
    CHECK(tokenizer.encode(" \t\u00a0 ").empty());
    CHECK(tokenizer.decode({}) == "");
  }
  for (const char* type : {"unigram", "bpe"}) {
    TokenizerOptions bytes = options(type, 500);
    bytes.byte_fallback = true;
    const Tokenizer tokenizer = Tokenizer::train(text(), bytes, 1);
    CHECK(tokenizer.decode(tokenizer.encode(foreign)) == foreign);
  }
}

TEST_CASE("special ids are skipped and ids outside the vocabulary are errors", "[text]") {
  const Tokenizer tokenizer = Tokenizer::train(text(), options("bpe", 200), 1);
  std::vector<int64_t> ids = tokenizer.encode(text()[0]);
  ids.insert(ids.begin(), tokenizer.bos_id());
  ids.insert(ids.begin() + 2, tokenizer.pad_id());
  ids.push_back(tokenizer.eos_id());
  CHECK(tokenizer.decode(ids) == text()[0]);
  CHECK_THROWS_WITH(tokenizer.decode({200}), "token id 200: expected 0 to 199");
  CHECK_THROWS_WITH(tokenizer.piece(-1), "token id -1: expected 0 to 199");
}

TEST_CASE("a model is the same after saving and loading", "[text]") {
  const Tokenizer trained = Tokenizer::train(text(), options("unigram", 200), 1);
  const Tokenizer restored = Tokenizer::from_bytes(trained.serialized());
  Scratch scratch;
  const std::string path = (scratch / "a.model").string();
  std::ofstream(path, std::ios::binary) << trained.serialized();
  const Tokenizer loaded = Tokenizer::load(path);
  CHECK(loaded.serialized() == trained.serialized());
  for (const std::string& line : text()) {
    REQUIRE(restored.encode(line) == trained.encode(line));
    REQUIRE(loaded.encode(line) == trained.encode(line));
  }
}

TEST_CASE("files that are no model are refused", "[text]") {
  Scratch scratch;
  const std::string path = (scratch / "a.model").string();
  const std::string model = Tokenizer::train(text(), options("bpe", 100), 1).serialized();
  for (const std::string& bytes : {std::string(), std::string("no model"), model.substr(0, 500)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_WITH(Tokenizer::load(path), ContainsSubstring("a.model: not a SentencePiece model"));
  }
  CHECK_THROWS_AS(Tokenizer::load((scratch / "none").string()), FileError);
}

TEST_CASE("a loaded model keeps its ids, and missing special ones come after its pieces", "[text]") {
  const Tokenizer no_pad = Tokenizer::from_bytes(foreign_model(1, 2));
  CHECK(no_pad.unk_id() == 0);
  CHECK(no_pad.bos_id() == 1);
  CHECK(no_pad.eos_id() == 2);
  CHECK(no_pad.pad_id() == 200);
  CHECK(no_pad.size() == 201);
  CHECK(no_pad.piece(200) == "<pad>");

  const Tokenizer none = Tokenizer::from_bytes(foreign_model(-1, -1));
  CHECK(none.pad_id() == 200);
  CHECK(none.bos_id() == 201);
  CHECK(none.eos_id() == 202);
  CHECK(none.size() == 203);
  std::vector<int64_t> ids = none.encode(text()[0]);
  ids.push_back(none.eos_id());
  ids.push_back(none.pad_id());
  CHECK(none.decode(ids) == text()[0]);
}

TEST_CASE("lower_case and normalization are part of the model", "[text]") {
  TokenizerOptions folded = options("char", 100);
  folded.lower_case = true;
  const Tokenizer lower = Tokenizer::train({"ab\u00e4 ABC", "cba"}, folded, 1);
  CHECK(lower.decode(lower.encode("ABC \u00c4")) == "abc \u00e4");
  TokenizerOptions kept = options("char", 100);
  const Lines wide = {"a\uff21 \u00bd"};
  CHECK(Tokenizer::train(wide, kept, 1).decode(Tokenizer::train(wide, kept, 1).encode(wide[0])) == "aA 1\u20442");
  kept.normalization = "identity";
  CHECK(Tokenizer::train(wide, kept, 1).decode(Tokenizer::train(wide, kept, 1).encode(wide[0])) == wide[0]);
}

TEST_CASE("tokenizer options that contradict each other are told", "[text]") {
  const auto problems = [](auto change) {
    TokenizerOptions options;
    change(options);
    Problems found;
    options.rules(found);
    std::string text;
    for (const auto& problem : found.found) text += problem.field + ": " + problem.message + "\n";
    return text;
  };
  CHECK(problems([](TokenizerOptions&) {}).empty());
  CHECK(problems([](TokenizerOptions& o) { o.source_model = "a"; }) ==
        "source_model: expected target_model beside it\n");
  CHECK_THAT(problems([](TokenizerOptions& o) { o.model = o.target_model = "a"; }),
             ContainsSubstring("model: give either"));
  CHECK_THAT(problems([](TokenizerOptions& o) { o.lower_case = true, o.normalization = "identity"; }),
             ContainsSubstring("lower_case: expected normalization"));
  CHECK_THAT(problems([](TokenizerOptions& o) { o.byte_fallback = true, o.type = "char"; }),
             ContainsSubstring("byte_fallback: expected type"));
  CHECK_THAT(problems([](TokenizerOptions& o) { o.byte_fallback = true, o.vocabulary = 260; }),
             ContainsSubstring("vocabulary: expected more than 260"));
}
