#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "src/run/spec.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

const std::string train_a_little = R"({"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}})";

std::string evaluate_with(const std::string& name, const std::string& search) {
  return R"(, {"evaluate": {"name": ")" + name + R"(", "metrics": ["bleu"], "samples": 20, "search": )" + search + "}}";
}

}  // namespace

TEST_CASE("a spec says how outputs are found: drawn, forced to begin, greedy", "[run]") {
  Folder folder;
  const auto spec = folder.write(
      "x.json", tiny_spec("[" + train_a_little + evaluate_with("greedy", R"({"beam": 1, "max_length": 9})") +
                          evaluate_with("drawn", R"({"temperature": 1.0, "top_p": 0.9, "max_length": 9})") +
                          evaluate_with("same", R"({"temperature": 1.0, "top_p": 0.9, "max_length": 9})") +
                          evaluate_with("other", R"({"temperature": 1.0, "top_p": 0.9, "max_length": 9, "seed": 2})") +
                          evaluate_with("begun", R"({"beam": 3, "max_length": 9, "prefix": "Die Frau"})") + "]"));
  const auto run = run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto stages = nlohmann::json::parse(run.out).at("stages");
  const auto texts = [&](const char* stage) {
    std::vector<std::string> all;
    for (const auto& sample : stages.at(stage).at("samples")) all.push_back(sample.at("hypothesis"));
    return all;
  };
  REQUIRE(texts("drawn").size() == 20);
  CHECK(texts("drawn") == texts("same"));
  CHECK(texts("drawn") != texts("other"));
  CHECK(texts("drawn") != texts("greedy"));
  for (const auto& text : texts("begun")) CHECK(text.rfind("Die Frau", 0) == 0);
}

TEST_CASE("an exported file neither draws nor begins by force, and a spec that asks for it is told", "[run]") {
  Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec("[" + train_a_little + R"(, {"export": {"search": {"temperature": 0.5, "prefix": "Die"}}}])"));
  std::string mistakes;
  try {
    load_spec(spec.string(), {});
  } catch (const UsageError& error) {
    mistakes = error.what();
  }
  CHECK_THAT(mistakes, ContainsSubstring("stages[1].export.search.temperature: an exported file translates greedily"));
  CHECK_THAT(mistakes, ContainsSubstring("stages[1].export.search.prefix: an exported file translates greedily"));
}
