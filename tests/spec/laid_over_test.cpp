// Lists whose items start with values: what an item writes is laid over them.
#include <nlohmann/json.hpp>

#include "src/spec/catalogue_text.h"
#include "src/spec/dump.h"
#include "src/spec/reader.h"
#include "src/spec/schema.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"
#include "tests/spec/wrong_specs.h"

using namespace headlab;

namespace {

struct Part : Described<Part> {
  std::vector<int64_t> layers;
  toy::AttentionOptions attention;
  void describe(Fields& fields) override {
    fields.add("layers", layers, "numbers").at_least(0).required();
    fields.add("attention", attention, "of these");
  }
};

struct StackSpec : Described<StackSpec> {
  toy::AttentionOptions attention;
  std::vector<Part> per_layer;
  void describe(Fields& fields) override {
    fields.add("attention", attention, "of each");
    fields.add("per_layer", per_layer, std::function<Part()>([this] {
                 Part part;
                 part.attention = attention;
                 return part;
               }),
               "those that differ");
  }
};

StackSpec sound(const std::string& text) {
  StackSpec spec;
  read_or_throw(Document::parse_text(text, "x.json"), spec);
  return spec;
}

}  // namespace

TEST_CASE("an item keeps of its start what it does not write, at any depth") {
  const auto spec = sound(R"({
    "attention": {"heads": 4, "width": 64, "position": {"type": "rope", "base": 500, "fraction": 0.5},
                  "gates": [{"type": "table", "length": 7}, "none"]},
    "per_layer": [
      {"layers": [0]},
      {"layers": [1, 2], "attention": {"heads": 2}},
      {"layers": [3], "attention": {"position": {"type": "rope", "fraction": 0.25}, "gates": []}},
      {"layers": [4], "attention": {"position": {"type": "table", "length": 3}, "gates": ["rope"]}},
      {"layers": [5], "attention": {"position": "rope", "bias": false}}]})");
  REQUIRE(spec.per_layer.size() == 5);
  for (const auto& part : spec.per_layer) CHECK(part.attention.width == 64);
  const auto rope = [&](std::size_t i) { return spec.per_layer[i].attention.position.as<toy::RopeOptions>(); };
  CHECK(spec.per_layer[0].attention.heads == 4);
  CHECK(rope(0).base == 500);
  CHECK(spec.per_layer[0].attention.gates.items.size() == 2);
  CHECK(spec.per_layer[0].attention.gates.items[0].as<toy::TableOptions>().length == 7);
  CHECK(spec.per_layer[1].layers == std::vector<int64_t>{1, 2});
  CHECK(spec.per_layer[1].attention.heads == 2);
  CHECK(rope(1).fraction == 0.5);
  // A choice named as it is keeps its options; another entry starts from its own defaults; a list is a new list.
  CHECK(rope(2).base == 500);
  CHECK(rope(2).fraction == 0.25);
  CHECK(spec.per_layer[2].attention.gates.items.empty());
  CHECK(spec.per_layer[3].attention.position.as<toy::TableOptions>().length == 3);
  CHECK(spec.per_layer[3].attention.gates.items[0].as<toy::RopeOptions>().base == 10000);
  CHECK(rope(4).base == 500);
  CHECK_FALSE(spec.per_layer[4].attention.bias);
  CHECK(spec.attention.bias);
}

TEST_CASE("items start from the stack's own values wherever these stand in the text") {
  const auto spec =
      sound(R"({"per_layer": [{"layers": [0], "attention": {"heads": 2}}], "attention": {"heads": 8, "width": 32}})");
  CHECK(spec.per_layer[0].attention.width == 32);
  CHECK(spec.per_layer[0].attention.heads == 2);
  CHECK(spec.attention.heads == 8);
}

TEST_CASE("a resolved spec with items that were laid over reads back the same") {
  const auto spec = sound(R"({"attention": {"heads": 4, "position": {"type": "rope", "base": 500}},
    "per_layer": [{"layers": [1], "attention": {"position": {"type": "rope", "fraction": 0.5}, "gates": ["none"]}}]})");
  const auto text = dump_text(spec);
  CHECK(dump_text(sound(text)) == text);
  CHECK(nlohmann::json::parse(text).at("per_layer").at(0).at("attention").at("position").at("base") == 500);
}

TEST_CASE("an override of one key reaches into an item") {
  Document document = Document::parse_text(
      R"({"attention": {"position": {"type": "rope", "base": 500}}, "per_layer": [{"layers": [0]}]})", "x.json");
  CHECK(apply_overrides(document, {"per_layer[0].attention.position.fraction=0.5"}).empty());
  StackSpec spec;
  read_or_throw(document, spec);
  CHECK(spec.per_layer[0].attention.position.as<toy::RopeOptions>().base == 500);
  CHECK(spec.per_layer[0].attention.position.as<toy::RopeOptions>().fraction == 0.5);
}

TEST_CASE("mistakes within items have their line and column, and what is new needs its required fields") {
  const std::vector<WrongSpec> rows{
      {R"({"per_layer": [{"layers": [0], "attention": {"headz": 4}}]})",
       {},
       R"(x.json:1:46: per_layer[0].attention.headz: unknown key; did you mean "heads"? (accepted: heads, width, bias, position, gates))"},
      {R"({"per_layer": [{"attention": {"heads": 4}}]})",
       {},
       R"(x.json:1:16: per_layer[0].layers: required: a list of integers of at least 0, numbers)"},
      {R"({"per_layer": [{"layers": [0], "attention": {"heads": 3}}]})",
       {},
       R"(x.json:1:45: per_layer[0].attention.width: expected a multiple of heads (3), got 128)"},
      {R"({"per_layer": [{"layers": [0], "attention": {"position": "table"}}]})",
       {},
       R"(x.json:1:58: per_layer[0].attention.position.length: required: an integer of at least 1, longest sequence)"},
      {R"({"per_layer": [{"layers": [0], "attention": {"gates": ["table"]}}]})",
       {},
       R"(x.json:1:56: per_layer[0].attention.gates[0].length: required: an integer of at least 1, longest sequence)"},
      {R"({"per_layer": [{"layers": [0], "attention": {"position": {"fraction": 0.5}}}]})",
       {},
       R"(x.json:1:58: per_layer[0].attention.position: expected a "type", the name of a position (exists: none, rope, table))"},
      {R"({"per_layer": [{"layers": [-1]}]})",
       {},
       R"(x.json:1:28: per_layer[0].layers[0]: expected an integer of at least 0, got -1)"},
      {R"({"per_layer": [3]})", {}, R"(x.json:1:16: per_layer[0]: expected an object, got 3)"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(refusal<StackSpec>(row.text, row.overrides) == whole_message(row));
  }
}

TEST_CASE("schema and catalogue know the items") {
  const auto described = schema(StackSpec(), "x");
  const auto& item = described.at("$defs").at("per_layer_item");
  CHECK(item.at("properties").contains("attention"));
  CHECK(item.at("required").size() == 1);
  const auto text = options_text(StackSpec());
  CHECK_THAT(text, ContainsSubstring("per_layer[].attention"));
  CHECK_THAT(text, ContainsSubstring("as beside the list"));
  CHECK_THAT(text, !ContainsSubstring("per_layer[].attention.heads"));  // said already
}
