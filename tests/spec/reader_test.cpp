#include "src/spec/reader.h"

#include "tests/catch.h"
#include "tests/spec/toy.h"
#include "tests/spec/wrong_specs.h"

using namespace headlab;
using toy::ToySpec;

namespace {

ToySpec sound(const std::string& text) {
  ToySpec spec;
  read_or_throw(Document::parse_text(text, "x.json"), spec);
  return spec;
}

/// Holds a list of its own kind, and rules that throw.
struct Thrower : Described<Thrower> {
  void describe(Fields&) override {}
  void rules(Problems&) const override { throw UsageError("expected another spec"); }
};

}  // namespace

TEST_CASE("each kind of field takes its value") {
  ToySpec spec = sound(R"({
    "$schema": "headlab.schema.json", "$schema_version": 1,
    "name": "a", "question": "why?", "quiet": true, "seeds": [3, 1e2], "languages": ["fr"],
    "model": {"vocabulary": 8e3, "dropout": 0, "attention": {"heads": 4, "bias": false, "width": 64,
      "position": {"type": "rope", "base": 500}, "gates": ["none", {"type": "table", "length": 7}]}},
    "stages": [{"train": {"steps": 20, "warmup": null}}, "evaluate", {"prune": {"fraction": 1}}],
    "sweep": {"seed": [1, {"x": null}]},
    "expect": [{"that": "a", "above": 3.50}, {"that": "b", "equals": "c", "within": 0.1}]
  })");
  CHECK(spec.name == "a");
  CHECK(spec.question == "why?");
  CHECK(spec.quiet == true);
  CHECK(spec.seeds == std::vector<int64_t>{3, 100});
  CHECK(spec.languages == std::vector<std::string>{"fr"});
  CHECK(spec.model.vocabulary == 8000);
  CHECK(spec.model.dropout == 0);
  CHECK(spec.model.attention.heads == 4);
  CHECK_FALSE(spec.model.attention.bias);
  CHECK(spec.model.attention.position.as<toy::RopeOptions>().base == 500);
  REQUIRE(spec.model.attention.gates.items.size() == 2);
  CHECK(spec.model.attention.gates.items[1].as<toy::TableOptions>().length == 7);
  REQUIRE(spec.stages.items.size() == 3);
  CHECK(spec.stages.items[0].as<toy::TrainOptions>().steps == 20);
  CHECK(spec.stages.items[0].as<toy::TrainOptions>().warmup == std::nullopt);
  CHECK(spec.stages.items[1].type() == "evaluate");
  CHECK(spec.stages.items[2].as<toy::PruneOptions>().fraction == 1);
  CHECK(spec.sweep.dump() == R"({"seed":[1,{"x":null}]})");
  REQUIRE(spec.expect.size() == 2);
  CHECK(spec.expect[0].above == "3.50");
  CHECK(spec.expect[1].within == 0.1);
}

TEST_CASE("what a spec leaves out keeps its default") {
  ToySpec spec = sound(R"({"model": {"vocabulary": 9}})");
  CHECK(spec.name == "toy");
  CHECK(spec.question == std::nullopt);
  CHECK(spec.languages == std::vector<std::string>{"en", "de"});
  CHECK(spec.model.attention.position.type() == "none");
}

TEST_CASE("a list replaces the default list, and a named entry has that entry's defaults") {
  ToySpec spec;
  spec.model.attention.position.choose("rope");
  spec.model.attention.position.as<toy::RopeOptions>().base = 7;
  auto text = R"({"seeds": [], "model": {"vocabulary": 9, "attention": {"position": "rope"}}})";
  read_or_throw(Document::parse_text(text, "x.json"), spec);
  CHECK(spec.seeds.empty());
  CHECK(spec.model.attention.position.as<toy::RopeOptions>().base == 10000);
}

TEST_CASE("a value that could not be read leaves its default") {
  ToySpec spec;
  auto text = R"({"seeds": 3, "model": {"vocabulary": 9, "dropout": "x"}})";
  auto mistakes = read(Document::parse_text(text, "x.json"), spec);
  CHECK(mistakes.size() == 2);
  CHECK(spec.seeds == std::vector<int64_t>{1});
  CHECK(spec.model.dropout == 0.1);
}

TEST_CASE("an error that rules throw is a mistake of the struct") {
  CHECK(refusal<Thrower>("\n {}") == "x.json:2:2: expected another spec\n1 mistake, nothing was run");
}

TEST_CASE("repeated keys are found within values that are kept as they are, and within unknown keys") {
  CHECK(refusal<ToySpec>(R"({"model": {"vocabulary": 9}, "sweep": {"a": [], "a": []}})") ==
        "x.json:1:49: sweep.a: repeated key; it stands first at line 1, column 40\n1 mistake, nothing was run");
}

TEST_CASE("mistakes are told once, files before overrides") {
  auto file = std::make_shared<const Place::Source>(Place::Source{"x.json", "", 0});
  auto set = std::make_shared<const Place::Source>(Place::Source{"--set a=3", "a", 1});
  std::vector<Mistake> mistakes(4);
  mistakes[0].place = {set, 0, 0}, mistakes[0].path = "a", mistakes[0].message = "three";
  mistakes[1].place = {file, 10, 1}, mistakes[1].path = "b", mistakes[1].message = "two";
  mistakes[2].place = {file, 9, 5}, mistakes[2].path = "c", mistakes[2].message = "one";
  mistakes[3] = mistakes[1];
  SpecErrors errors(mistakes);
  CHECK(std::string(errors.what()) ==
        "x.json:9:5: c: one\nx.json:10:1: b: two\n--set a=3: three\n3 mistakes, nothing was run");
  CHECK(errors.mistakes.size() == 3);
  CHECK(errors.exit_code == 2);
  CHECK_NOTHROW(throw_mistakes({}));
}
