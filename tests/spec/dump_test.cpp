#include "src/spec/dump.h"

#include <limits>
#include <random>

#include "src/spec/override.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;
using toy::ToySpec;

namespace {

std::string again(const std::string& text) {
  ToySpec spec;
  read_or_throw(Document::parse_text(text, "dump.json"), spec);
  return dump_text(spec);
}

}  // namespace

TEST_CASE("a dump has every field with its value, in the order of the description") {
  ToySpec spec;
  spec.model.vocabulary = 9;
  spec.model.attention.gates.items.emplace_back(toy::positions, "rope");
  spec.stages.items.emplace_back(toy::stages, "prune");
  CHECK(dump(spec).dump() == R"({"name":"toy","question":null,"quiet":null,"seeds":[1],"languages":["en","de"],)"
                             R"("model":{"vocabulary":9,"dropout":0.1,"attention":{"heads":8,"width":128,"bias":true,)"
                             R"("position":{"type":"none"},"gates":[{"type":"rope","base":10000.0,"fraction":1.0}]}},)"
                             R"("stages":[{"prune":{"fraction":0.5}}],"sweep":null,"expect":[]})");
}

TEST_CASE("reading a dump gives options with the same dump, also where optional values differ from their defaults") {
  ToySpec spec;
  read_or_throw(Document::parse_text(R"({
    "name": "a\"\u0001ä😀", "question": "", "quiet": false, "seeds": [9223372036854775807, 0],
    "model": {"vocabulary": 9, "dropout": 0.30000000000000004, "attention": {"gates": ["rope", "none"]}},
    "stages": ["evaluate", {"train": {"steps": 1, "warmup": null, "betas": [1e-300, 0.1]}}],
    "sweep": {"z": [1.0, 1, 1e3, true, null, {"b": 1, "a": []}]},
    "expect": [{"that": "a", "at_least": 60}, {"claim": "x", "that": "b", "equals": "a - 1", "within": 1}]
  })",
                                     "x.json"),
                spec);
  std::string text = dump_text(spec);
  CHECK(again(text) == text);
  CHECK(again(again(text)) == text);
}

TEST_CASE("every double comes back from a dump bit for bit") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    ToySpec spec, read_back;
    spec.model.vocabulary = 2;
    spec.model.dropout =
        std::uniform_real_distribution<double>(0, 1)(random) * std::pow(10.0, -static_cast<int>(i % 300));
    read_or_throw(Document::parse_text(dump_text(spec), "dump.json"), read_back);
    if (read_back.model.dropout != spec.model.dropout) FAIL(dump_text(spec));
  }
}

TEST_CASE("a number that JSON cannot hold is our own mistake") {
  ToySpec spec;
  spec.model.dropout = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(dump(spec), std::logic_error);
}

TEST_CASE("a dump leaves the options as they were") {
  const ToySpec spec;
  CHECK(dump_text(spec) == dump_text(spec));
}
