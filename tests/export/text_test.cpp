#include "src/export/text.h"

#include <torch/script.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modules/base/random.h"
#include "modules/tensor/torch.h"
#include "src/data/grammar/grammar.h"
#include "src/decode/translate.h"
#include "src/export/torchscript.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

/// German and English sentences of the grammar: some to train on, others to compare.
struct Lines {
  std::vector<std::string> train, test;
};
const Lines& lines() {
  static const Lines made = [] {
    grammar::GrammarOptions options;
    options.train = 1500;
    options.valid = options.test = 100;
    const auto corpus = grammar::generate(options);
    Lines all;
    for (const auto& example : corpus.split("train").examples) {
      all.train.push_back(example.source);
      all.train.push_back(example.target);
    }
    for (const auto& example : corpus.split("test").examples) {
      all.test.push_back(example.source);
      all.test.push_back(example.target);
    }
    return all;
  }();
  return made;
}

Tokenizer trained(const std::string& type, const std::function<void(TokenizerOptions&)>& tweak = {}) {
  TokenizerOptions options;
  options.type = type;
  options.vocabulary = 400;
  if (tweak) tweak(options);
  return Tokenizer::train(lines().train, options, 1);
}

/// Random bytes as text: valid characters of many scripts, spaces, and now and then a byte that is none.
std::vector<std::string> wild_lines(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::string> made;
  const auto put = [](std::string& text, uint32_t c) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
  };
  const std::vector<std::pair<uint32_t, uint32_t>> scripts{
      {0x20, 0x7F},     {0x20, 0x21},     {0xA0, 0x250},      {0x300, 0x340}, {0x1100, 0x1200}, {0x2000, 0x2100},
      {0x3000, 0x3100}, {0xFF00, 0xFFF0}, {0x1F600, 0x1F650}, {0x80, 0xD800}, {0x61, 0x7B},     {0x61, 0x7B}};
  for (int64_t i = 0; i < count; ++i) {
    auto& text = made.emplace_back();
    const auto length = random.below(20);
    for (uint64_t n = 0; n < length; ++n) {
      const auto [first, end] = scripts[random.below(scripts.size())];
      put(text, first + static_cast<uint32_t>(random.below(end - first)));
      if (random.below(60) == 0) text += static_cast<char>(0x80 + random.below(128));
    }
  }
  return made;
}

void same_as(const Tokenizer& tokenizer) {
  const torch::jit::Module root("Root");
  auto all = lines().test;
  const auto wild = wild_lines(300, 5);
  all.insert(all.end(), wild.begin(), wild.end());
  CHECK(script_tokenizer(tokenizer, root, {}).refused == "");
  auto script = script_tokenizer(tokenizer, root, {}).module;
  int64_t other_ids = 0, other_texts = 0;
  for (const auto& line : all) {
    const auto expected = tokenizer.encode(line);
    if (script.get_method("encode")({line}).toIntVector() != expected && other_ids++ == 0) {
      UNSCOPED_INFO("first line with other ids: " << line);
    }
    other_texts += script.get_method("decode")({expected}).toStringRef() != tokenizer.decode(expected);
  }
  CHECK(other_ids == 0);
  CHECK(other_texts == 0);
}

}  // namespace

TEST_CASE("a tokenizer as TorchScript gives the ids and texts of the tokenizer") {
  SECTION("unigram") { same_as(trained("unigram")); }
  SECTION("bpe") { same_as(trained("bpe")); }
  SECTION("word") { same_as(trained("word")); }
  SECTION("char") { same_as(trained("char")); }
  SECTION("identity") {
    same_as(trained("bpe", [](auto& options) { options.normalization = "identity"; }));
  }
  SECTION("nfkc") {
    same_as(trained("unigram", [](auto& options) { options.normalization = "nfkc"; }));
  }
  SECTION("lower case") {
    same_as(trained("unigram", [](auto& options) { options.lower_case = true; }));
  }
  SECTION("bytes") {
    for (const auto* type : {"unigram", "bpe"})
      same_as(trained(type, [](auto& options) {
        options.byte_fallback = true;
        options.vocabulary = 600;
      }));
  }
}

TEST_CASE("an exported file translates text, in C++ and in Python") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto source = trained("bpe"), target = trained("unigram");
  EncoderDecoderOptions model_options;
  model_options.d_model = 16;
  model_options.embedding.max_length = 64;
  model_options.embedding.tie = "target";
  model_options.encoder.attention.heads = model_options.decoder.attention.heads =
      model_options.decoder.cross_attention.heads = 2;
  const auto model = std::make_shared<EncoderDecoder>(model_options, ModelContext{source.size(), target.size(), {}});
  fill(*model, 0.3);
  model->eval();

  ExportOptions options;
  options.source = {source.pad_id(), source.bos_id(), source.eos_id()};
  options.target = {target.pad_id(), target.bos_id(), target.eos_id()};
  options.search.beam = 2;
  options.search.max_length_extra = 5;
  options.source_tokenizer = source;
  options.target_tokenizer = target;
  options.lines = lines().test;
  const auto report = export_torchscript(*model, scratch / "model.pt", options);
  CHECK(report.no_text == "");

  std::vector<std::string> texts{"Die größte Übung, ärgerlich!", "", "naïve 漢字 🙂"};
  texts.insert(texts.end(), lines().test.begin(), lines().test.begin() + 70);
  std::vector<std::vector<int64_t>> ids;
  for (const auto& text : texts) ids.push_back(source.encode(text));
  Forward run;
  std::vector<std::string> expected;
  for (const auto& found : translate_ids(*model, ids, options.source, options.target, options.search, 2000, run))
    expected.push_back(target.decode(found[0].ids));

  auto file = torch::jit::load((scratch / "model.pt").string());
  c10::List<std::string> list;
  for (const auto& text : texts) list.push_back(text);
  std::vector<std::string> got;
  for (const auto& text : file.get_method("translate")({list}).toList()) got.push_back(c10::IValue(text).toStringRef());
  CHECK(got == expected);

  if (test::skipped(test::python().empty(),
                    "no Python with torch: set HEADLAB_PYTHON to one, or let tools/headlab make .deps/venv"))
    return;
  std::ofstream(scratch / "cases.json") << nlohmann::json{
      {{"file", (scratch / "model.pt").string()}, {"lines", texts}, {"ids", ids}, {"texts", expected}}};
  const auto command = "\"" + test::python() + "\" \"" + test::in_source("tests/export/check_export.py") + "\" \"" +
                       (scratch / "cases.json").string() + "\"";
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("a tokenizer that TorchScript can't carry is refused with its kind") {
  const torch::jit::Module root("Root");
  CHECK(script_tokenizer(trained("wordpiece"), root, {}).refused ==
        "it is a wordpiece tokenizer, and only those of SentencePiece can be");
}

TEST_CASE("without tokenizers an exported file's translate says why it can't") {
  const Scratch scratch;
  const auto report = export_torchscript(*translator(), scratch / "model.pt", {});
  CHECK(report.no_text == "the file was exported without tokenizers");
  auto file = torch::jit::load((scratch / "model.pt").string());
  CHECK_THROWS_WITH(file.get_method("translate")({c10::List<std::string>({std::string("a")})}),
                    ContainsSubstring("translate: the file was exported without tokenizers; use translate_ids"));
}

}  // namespace headlab
