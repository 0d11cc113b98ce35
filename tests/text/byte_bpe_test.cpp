#include "src/text/byte_bpe.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/data/tokenizers.h"
#include "src/text/unicode.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;
using Ids = std::vector<int64_t>;

const nlohmann::json& golden() {
  static const nlohmann::json json = [] {
    std::ifstream file(test::in_source("tests/golden/byte_bpe.json"));
    return nlohmann::json::parse(file);
  }();
  return json;
}

ByteBpe small() { return {golden().at("vocabulary").get<Lines>(), golden().at("merges").get<Lines>(), "golden"}; }

Lines chunks(const std::string& text) {
  Lines all;
  for (const auto& chunk : gpt2_chunks(decode_utf8(text))) all.push_back(encode_utf8(chunk));
  return all;
}

}  // namespace

TEST_CASE("GPT-2's pattern cuts a text into contractions, letters, numbers, signs and white space", "[text]") {
  CHECK(chunks("I'm sure they'll come, it's 2026!") ==
        Lines{"I", "'m", " sure", " they", "'ll", " come", ",", " it", "'s", " 2026", "!"});
  CHECK(chunks("a  b   c") == Lines{"a", " ", " b", "  ", " c"});
  CHECK(chunks("a\n\nb\n") == Lines{"a", "\n", "\n", "b", "\n"});
  CHECK(chunks("  ") == Lines{"  "});
  CHECK(chunks("x2 \u00bd\u0663") == Lines{"x", "2", " \u00bd\u0663"});
  CHECK(chunks(" 's") == Lines{" '", "s"});
  CHECK(chunks("").empty());
}

TEST_CASE("byte-level ids are those of the reference, and every text comes back as it was", "[text]") {
  const auto model = small();
  REQUIRE(golden().at("rows").size() > 150);
  for (const auto& row : golden().at("rows")) {
    const auto text = row.at("text").get<std::string>();
    CAPTURE(text);
    CHECK(model.encode(text) == row.at("ids").get<Ids>());
    CHECK(model.decode(model.encode(text)) == text);
  }
}

TEST_CASE("special ids of a byte-level vocabulary give no text, and no text gives them", "[text]") {
  const auto model = small();
  CHECK(model.bos() == model.eos());
  CHECK(model.piece(model.eos()) == "<|endoftext|>");
  CHECK(model.pad() == model.size() - 2);
  CHECK(model.unk() == model.size() - 1);
  auto ids = model.encode("the cat");
  ids.insert(ids.begin(), {model.bos(), model.pad()});
  ids.push_back(model.unk());
  CHECK(model.decode(ids) == "the cat");
  for (const auto id : model.encode("<|endoftext|> <pad> <unk>"))
    CHECK((id != model.eos() && id != model.pad() && id != model.unk()));
  CHECK(model.decode({model.id("\u00e2")}) == "\uFFFD");  // the first byte of three, alone
}

TEST_CASE("byte-level vocabularies that are none are refused with the place", "[text]") {
  const auto vocabulary = golden().at("vocabulary").get<Lines>();
  CHECK_THROWS_WITH(
      ByteBpe({"a", "b"}, {}, "x"),
      ContainsSubstring("x: not a byte-level vocabulary: expected a piece for each byte, got none for byte 0"));
  CHECK_THROWS_WITH(
      ByteBpe(vocabulary, {"h e", "q zz"}, "x"),
      ContainsSubstring("x: merge 2: expected two pieces of the vocabulary that make a third, got \"q zz\""));
  CHECK_THROWS_WITH(ByteBpe(vocabulary, {"th"}, "x"), ContainsSubstring("x: merge 1: "));
  CHECK_THROWS_WITH(Tokenizer::from_bytes(R"({"tokenizer": "byte_bpe"})"),
                    "tokenizer: not a byte-level tokenizer as headlab writes it");
  Scratch scratch;
  const auto file = (scratch / "encoder.json").string();
  std::ofstream(file) << "{\"a\": 0, \"b\": 2}";
  CHECK_THROWS_WITH(load_byte_bpe(file),
                    ContainsSubstring("encoder.json: \"b\": expected the ids 0 to 1, each once, got 2"));
  std::ofstream(file) << "{\"a\": 0, \"b\": 1}";
  CHECK_THROWS_WITH(load_byte_bpe(file),
                    ContainsSubstring("expected its merges beside it, as vocab.bpe or merges.txt, got neither"));
}

TEST_CASE("a byte-level tokenizer is loaded from its two files, saved as one, and not trained", "[text]") {
  const auto model = small();
  Scratch scratch;
  TokenizerOptions options;
  options.type = "byte_bpe";
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].message ==
        "byte_bpe is loaded, not trained: name its vocabulary as model, or use bpe with byte_fallback");
  options.model = (scratch / "encoder.json").string();
  Problems none;
  options.rules(none);
  CHECK(none.found.empty());
  {
    auto encoder = nlohmann::json::object();
    const auto vocabulary = golden().at("vocabulary").get<Lines>();
    for (std::size_t i = 0; i < vocabulary.size(); ++i) encoder[vocabulary[i]] = i;
    std::ofstream(*options.model) << encoder.dump();
    std::ofstream merges(scratch / "vocab.bpe");
    merges << "#version: 0.2\n";
    for (const auto& merge : golden().at("merges")) merges << merge.get<std::string>() << "\n";
  }
  const auto pair = make_tokenizers(options, {}, {}, "", 1);
  CHECK(pair.source.kind() == "byte_bpe");
  CHECK(pair.source.serialized() == model.serialized());
  const auto restored = Tokenizer::from_bytes(pair.source.serialized());
  CHECK(restored.serialized() == model.serialized());
  CHECK(restored.size() == model.size());
  CHECK(restored.decode(restored.encode("any text  at all \n")) == "any text  at all \n");
}

TEST_CASE("GPT-2's own vocabulary gives the ids of the reference, and every text back", "[text]") {
  const char* data = std::getenv("HEADLAB_DATA");
  const auto folder = std::filesystem::path(data ? data : "") / "tok-gpt2-bpe";
  if (!data || !std::filesystem::exists(folder / "encoder.json")) {
    WARN("skipped: no tok-gpt2-bpe in HEADLAB_DATA");
    return;
  }
  const auto model = load_byte_bpe((folder / "encoder.json").string());
  CHECK(model->encode("Hello world") == Ids{15496, 995});
  CHECK(model->eos() == 50256);
  CHECK(model->size() == 50257 + 2);
  for (const auto& row : golden().at("gpt2")) {
    const auto text = row.at("text").get<std::string>();
    CAPTURE(text);
    CHECK(model->encode(text) == row.at("ids").get<Ids>());
    CHECK(model->decode(model->encode(text)) == text);
  }
}
