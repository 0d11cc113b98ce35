#include "src/spec/override.h"

#include <nlohmann/json.hpp>

#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;

namespace {

std::string after(const std::string& text, const std::vector<std::string>& arguments) {
  Document document = Document::parse_text(text, "x.json");
  for (const Mistake& mistake : apply_overrides(document, arguments)) return mistake.text();
  return to_json(document.root()).dump();
}

}  // namespace

TEST_CASE("--set reads its value as JSON, or else as a string") {
  CHECK(after("{}", {"a=3"}) == R"({"a":3})");
  CHECK(after("{}", {"a=true"}) == R"({"a":true})");
  CHECK(after("{}", {"a=[1,2]"}) == R"({"a":[1,2]})");
  CHECK(after("{}", {"a=\"3\""}) == R"({"a":"3"})");
  CHECK(after("{}", {"a=rope"}) == R"({"a":"rope"})");
  CHECK(after("{}", {"a=b=c"}) == R"({"a":"b=c"})");
  CHECK(after("{}", {"a="}) == R"({"a":""})");
  CHECK(after("{}", {"a=null"}) == R"({"a":null})");
  CHECK(after("{}", {"a=runs/x.json"}) == R"({"a":"runs/x.json"})");
}

TEST_CASE("--set reaches keys that the spec leaves out, and items of lists") {
  CHECK(after("{}", {"a.b.c=3"}) == R"({"a":{"b":{"c":3}}})");
  CHECK(after(R"({"a":[1,2]})", {"a[1]=5"}) == R"({"a":[1,5]})");
  CHECK(after(R"({"a":[1,2]})", {"a[2]=5"}) == R"({"a":[1,2,5]})");
  CHECK(after(R"({"s":[{"train":{}}]})", {"s[0].train.steps=5"}) == R"({"s":[{"train":{"steps":5}}]})");
  CHECK(after(R"({"a":null})", {"a.b=5"}) == R"({"a":{"b":5}})");
  CHECK(after(R"({"a":1})", {"a=2", "a=3"}) == R"({"a":3})");
}

TEST_CASE("a choice that was written as a name becomes an object when an option of it is set") {
  CHECK(after(R"({"p":"rope"})", {"p.base=5"}) == R"({"p":{"type":"rope","base":5}})");
  CHECK(after(R"({"s":["train"]})", {"s[0].train.steps=5"}) == R"({"s":[{"train":{"steps":5}}]})");
  CHECK(after(R"({"p":{"type":"rope","base":5}})", {"p=none"}) == R"({"p":"none"})");
}

TEST_CASE("an option of the default entry can be set without naming the entry") {
  toy::ToySpec spec;
  spec.model.attention.position.choose("rope");
  Document document = Document::parse_text(R"({"model": {"vocabulary": 9}})", "x.json");
  CHECK(apply_overrides(document, {"model.attention.position.base=5"}).empty());
  read_or_throw(document, spec);
  CHECK(spec.model.attention.position.as<toy::RopeOptions>().base == 5);
}

TEST_CASE("a --set that is wrong leaves the document as it was") {
  Document document = Document::parse_text(R"({"a":[1]})", "x.json");
  CHECK(apply_overrides(document, {"b.c[3]=5", "a[4].x=1"}).size() == 2);
  CHECK(to_json(document.root()).dump() == R"({"a":[1]})");
}
