#include "src/spec/schema.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;
using Json = nlohmann::ordered_json;

namespace {

/// A mix that may wrap another mix, and a tree of its own kind.
struct Wrap;
const Catalogue& mixes();
struct Plain : Described<Plain> {
  void describe(Fields&) override {}
};
struct Wrap : Described<Wrap> {
  Choice inner{mixes, "plain"};
  void describe(Fields& fields) override { fields.add("inner", inner, ""); }
};
struct Tree : Described<Tree> {
  Choice mix{mixes, "wrap"};
  std::vector<Tree> children;
  void describe(Fields& fields) override {
    fields.add("mix", mix, "");
    fields.add("children", children, "");
  }
};
const Catalogue& mixes() {
  static const Catalogue catalogue{
      "mix", "", {{"plain", "", "", [] { return std::make_shared<Plain>(); }}, {"wrap", "", "", [] {
                                                                                  return std::make_shared<Wrap>();
                                                                                }}}};
  return catalogue;
}

void collect_references(const Json& at, std::set<std::string>& out) {
  if (at.is_object() && at.contains("$ref")) out.insert(at["$ref"].get<std::string>());
  for (const Json& child : at) {
    if (child.is_structured()) collect_references(child, out);
  }
}

}  // namespace

TEST_CASE("a schema has types, meanings, defaults, ranges and choices of each field") {
  Json made = schema(toy::ToySpec(), "toy");
  CHECK(made["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(made["additionalProperties"] == false);
  CHECK(made["required"] == Json::array({"model"}));  // for what is required within
  const Json& model = made["properties"]["model"];
  CHECK(model["required"] == Json::array({"vocabulary"}));
  CHECK(model["additionalProperties"] == false);
  CHECK(model["properties"]["dropout"].dump() ==
        R"({"type":"number","minimum":0,"exclusiveMaximum":1,"description":"rate","default":0.1})");
  CHECK(model["properties"]["attention"]["properties"]["heads"].dump() ==
        R"({"type":"integer","minimum":1,"maximum":64,"description":"number of heads","default":8})");
  CHECK(made["properties"]["quiet"].dump() ==
        R"({"type":["boolean","null"],"description":"absent: quiet in a pipe","default":null})");
  CHECK(made["properties"]["languages"].dump() ==
        R"({"type":"array","items":{"type":"string","enum":["en","de","fr"]},"description":"in order",)"
        R"("default":["en","de"]})");
  CHECK(made["$defs"]["stage.train"]["properties"]["train"]["properties"]["steps"]["description"] ==
        "optimiser steps; in steps");
  CHECK(made["$defs"]["expect_item"]["properties"]["at_least"]["type"] == Json::array({"string", "number", "null"}));
}

TEST_CASE("a choice is a name or an object of one entry; a name only where the entry needs no options") {
  Json made = schema(toy::ToySpec(), "toy");
  CHECK(made["properties"]["model"]["properties"]["attention"]["properties"]["position"].dump() ==
        R"({"$ref":"#/$defs/position","description":"how a head knows places","default":{"type":"none"}})");
  CHECK(made["$defs"]["position"]["oneOf"].dump() ==
        R"([{"const":"none","description":"no positions"},{"$ref":"#/$defs/position.none"},)"
        R"x({"const":"rope","description":"rotary positions (arXiv 2104.09864)"},{"$ref":"#/$defs/position.rope"},)x"
        R"({"$ref":"#/$defs/position.table"}])");
  CHECK(made["$defs"]["position.table"]["required"] == Json::array({"type", "length"}));
  CHECK(made["$defs"]["stage.prune"]["required"] == Json::array({"prune"}));
}

TEST_CASE("choices and lists that may hold their own kind end in references that exist") {
  Json made = schema(Tree(), "tree");
  std::set<std::string> references;
  collect_references(made, references);
  CHECK(references.size() == 4);  // mix, its two entries, a child
  for (const std::string& reference : references) {
    CHECK(made["$defs"].contains(reference.substr(std::string("#/$defs/").size())));
  }
}
