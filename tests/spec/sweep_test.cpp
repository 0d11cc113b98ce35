#include "src/spec/sweep.h"

#include <nlohmann/json.hpp>
#include <set>

#include "src/spec/mistakes.h"
#include "src/spec/override.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;

namespace {

std::vector<Variant> runs(const std::string& text) { return expand(Document::parse_text(text, "x.json")); }

std::vector<std::string> labels(const std::string& text) {
  std::vector<std::string> labels;
  for (const Variant& run : runs(text)) labels.push_back(run.label);
  return labels;
}

std::string refused(const std::string& text) {
  try {
    runs(text);
  } catch (const SpecErrors& errors) {
    std::string what = errors.what();
    return what.substr(0, what.rfind('\n'));
  }
  return "accepted";
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("a grid gives every combination, the last key fastest") {
  auto found = runs(R"({"a": 0, "sweep": {"m.layers": [1, 2], "seed": [1, 2, 3]}})");
  REQUIRE(found.size() == 6);
  CHECK(found[1].label == "layers=1, seed=2");
  CHECK(to_json(found[1].document.root()).dump() == R"({"a":0,"m":{"layers":1},"seed":2})");
  CHECK(found[5].label == "layers=2, seed=3");
}

TEST_CASE("a list gives each run as it stands") {
  auto found = runs(R"({"m": {"width": 1}, "sweep": [{"m.width": 64, "m.heads": 4}, {"m.width": 128}, {}]})");
  REQUIRE(found.size() == 3);
  CHECK(to_json(found[0].document.root()).dump() == R"({"m":{"width":64,"heads":4}})");
  CHECK(found[0].label == "width=64, heads=4");
  CHECK(to_json(found[2].document.root()).dump() == R"({"m":{"width":1}})");
}

TEST_CASE("a spec without a sweep is one run") {
  CHECK(labels(R"({"a": 1})") == Strings{""});
  CHECK(labels(R"({"a": 1, "sweep": null})") == Strings{""});
}

TEST_CASE("labels are short where that tells the keys apart") {
  CHECK(labels(R"({"sweep": {"enc.layers": [1], "dec.layers": [2], "p": ["rope"]}})") ==
        Strings{"enc.layers=1, dec.layers=2, p=rope"});
  CHECK(labels(R"({"sweep": {"p": [{"type": "rope", "base": 5}, "none"]}})") == Strings{"p=#1", "p=none"});
}

TEST_CASE("a wrong sweep is refused with its places") {
  CHECK(refused(R"({"sweep": 3})") ==
        "x.json:1:11: sweep: expected an object (every combination) or a list of objects (one run each), got 3");
  CHECK(refused(R"({"sweep": {}})") == "x.json:1:11: sweep: expected at least one key with its values");
  CHECK(refused(R"({"sweep": []})") == "x.json:1:11: sweep: expected at least one run");
  CHECK(refused(R"({"sweep": {"seed": 3}})") == "x.json:1:20: sweep.seed: expected a list of values, got 3");
  CHECK(refused(R"({"sweep": {"seed": []}})") ==
        "x.json:1:20: sweep.seed: expected a list of values, got an empty list");
  CHECK(refused(R"({"sweep": [3]})") ==
        "x.json:1:12: sweep[0]: expected an object with the keys and values of one run, got 3");
  CHECK(refused(R"({"sweep": {"a..b": [1]}})") ==
        "x.json:1:12: sweep.\"a..b\": expected a key path such as model.width or stages[0].train.steps");
  CHECK(refused(R"({"sweep": {"sweep.x": [1]}})") == "x.json:1:12: sweep.\"sweep.x\": a sweep cannot change sweep");
  CHECK(refused(R"({"sweep": {"seed": [1], "seed": [2]}})") == "x.json:1:25: sweep.seed: repeated key");
  CHECK(refused(R"({"sweep": {"seed": [1, 2, 1]}})") == "x.json:1:27: sweep: runs 1 and 3 are the same: \"seed=1\"");
  CHECK(refused(R"({"a": 3, "sweep": {"a.b": [1]}})") == "x.json:1:20: a.b: a is 3, which has no keys");
}

TEST_CASE("a sweep of too many runs is refused before any is made") {
  std::string list = "[1";
  for (int i = 2; i <= 1000; ++i) list += "," + std::to_string(i);
  std::string grid = "{\"sweep\": {";
  for (int i = 0; i < 30; ++i) grid += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":" + list + "]";
  CHECK(refused(grid + "}}") == "x.json:1:11: sweep: expected at most 10000 runs");
}

TEST_CASE("keys and values of a sweep that do not suit the spec are told at their places, each once") {
  auto found =
      runs(R"({"model": {"vocabulary": 9}, "sweep": {"model.dropuot": [1], "model.attention.heads": [0, 2]}})");
  std::vector<Mistake> mistakes;
  for (const Variant& run : found) {
    toy::ToySpec spec;
    for (Mistake& mistake : read(run.document, spec)) mistakes.push_back(mistake);
  }
  CHECK(
      std::string(SpecErrors(mistakes).what()) ==
      "x.json:1:40: model.dropuot: unknown key; did you mean \"dropout\"? (accepted: vocabulary, dropout, attention)\n"
      "x.json:1:88: model.attention.heads: expected an integer in [1, 64], got 0\n"
      "2 mistakes, nothing was run");
}

TEST_CASE("a sweep can be set from the command line") {
  Document document = Document::parse_text("{}", "x.json");
  CHECK(apply_overrides(document, {"sweep={\"seed\": [1, 2]}"}).empty());
  CHECK(expand(document).size() == 2);
}

TEST_CASE("the parts of a sweep are disjoint and together all") {
  std::string text = R"({"sweep": {"a": [1, 2, 3, 4, 5], "b": [1, 2]}})";
  std::multiset<std::string> seen;
  for (std::size_t i = 1; i <= 4; ++i) {
    auto chosen = part(runs(text), {i, 4});
    CHECK((chosen.size() == 2 || chosen.size() == 3));
    for (const Variant& run : chosen) seen.insert(run.label);
  }
  auto all = labels(text);
  CHECK(seen == std::multiset<std::string>(all.begin(), all.end()));
}

TEST_CASE("a part is i/n with i from 1 to n") {
  Part third = parse_part("3/16");
  CHECK(third.number == 3);
  CHECK(third.count == 16);
  for (std::string wrong :
       {"", "3", "0/4", "5/4", "1/0", "-1/4", "1/4x", "a/b", "1/", "/4", "1/99999999999999999999"}) {
    CHECK_THROWS_AS(parse_part(wrong), UsageError);
  }
  CHECK_THROWS_WITH(parse_part("5/4"), "expected a part such as 3/16 (from 1/16 to 16/16), got \"5/4\"");
}

TEST_CASE("arms give each arm with each seed, a whole arm after another") {
  auto found = runs(R"({"seed": 9, "arms": {"full": {}, "half": {"m.heads": 4}}, "seeds": [1, 2]})");
  REQUIRE(found.size() == 4);
  CHECK(found[0].label == "full, seed=1");
  CHECK(found[0].arm == "full");
  CHECK(to_json(found[1].document.root()).dump() == R"({"seed":2})");
  CHECK(found[3].label == "half, seed=2");
  CHECK(found[3].arm == "half");
  CHECK(to_json(found[3].document.root()).dump() == R"({"seed":2,"m":{"heads":4}})");
  CHECK(labels(R"({"arms": {"a": {}, "b": {"x": 1}}})") == Strings{"a", "b"});
  CHECK(labels(R"({"seeds": [3, 4]})") == Strings{"seed=3", "seed=4"});
}

TEST_CASE("wrong arms are refused with their place") {
  CHECK(refused(R"({"arms": {"a": {}}, "sweep": {"x": [1]}})") ==
        "x.json:1:10: arms: expected a sweep or arms with seeds, got both");
  CHECK(refused(R"({"arms": {"a-b": {}}})") ==
        "x.json:1:11: arms.a-b: expected a name of letters, digits and _, since claims speak of it");
  CHECK(refused(R"({"arms": {"a": 3}})") == "x.json:1:16: arms.a: expected an object {key: value}, got 3");
  CHECK(refused(R"({"arms": []})") == "x.json:1:10: arms: expected an object {name: {key: value}}, got a list");
  CHECK(refused(R"({"arms": {"a": {"name": "x"}}})") == "x.json:1:17: arms.a.name: a sweep cannot change name");
  CHECK(refused(R"({"arms": {"a": {"seed": 1}}})") ==
        "x.json:1:17: arms.a.seed: an arm cannot change the seed; use \"seeds\"");
  CHECK(refused(R"({"seeds": 3})") == "x.json:1:11: seeds: expected a list of whole numbers, got 3");
  std::string many = "0";
  for (int i = 1; i <= 10000; ++i) many += "," + std::to_string(i);
  CHECK(refused("{\"seeds\": [" + many + "]}")
            .rfind("x.json:1:11: seeds: expected at most 10000 runs, and fewer of a large spec; got 10001", 0) == 0);
  CHECK(refused(R"({"seeds": [1, 2, 1]})") == "x.json:1:18: seeds[2]: the seed 1 is there already");
}
