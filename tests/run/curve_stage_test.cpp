#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

TEST_CASE("a curve of one stack says what it masked, and what each stack keeps", "[run]") {
  const Folder folder;
  // Heads: 4 in enc.self, 4 in dec.self, 2 in dec.cross.
  const auto spec = folder.write("x.json", tiny_spec(R"([{"score": {"scorer": "random"}},
    {"curve": {"name": "cross", "scores": "score", "fractions": [0, 0.5, 1], "metric": "loss", "stacks": ["dec.cross"], "random_sets": 2, "evaluate": {"limit": 4}}},
    {"curve": {"name": "worst", "scores": "score", "fractions": [0.5], "metric": "loss", "highest": true, "scope": "stack", "evaluate": {"limit": 4}}}])"));
  const auto out = folder.path() / "runs";
  const auto run = run_program({"run", spec.string(), "--out", out.string(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto stages = nlohmann::json::parse(read_file(only_run(out, "tiny") / "results.json")).at("stages");
  const auto& cross = stages.at("cross");
  CHECK(cross["stacks"] == nlohmann::json{"dec.cross"});
  CHECK(cross["scope"] == "global");
  CHECK(cross["highest"] == false);
  CHECK(cross["model"] == "initial");
  for (const auto& [point, kept] : {std::pair(0, 2), {1, 1}, {2, 0}}) {
    CHECK(cross["points"][point]["kept_by_stack"] ==
          nlohmann::json{{"enc.self", 4}, {"dec.self", 4}, {"dec.cross", kept}});
    CHECK(cross["points"][point]["heads_kept"] == 8 + kept);
  }
  const auto& worst = stages.at("worst");
  CHECK(worst["highest"] == true);
  CHECK(worst["points"][0]["kept_by_stack"] == nlohmann::json{{"enc.self", 2}, {"dec.self", 2}, {"dec.cross", 1}});
  CHECK_THAT(read_file(only_run(out, "tiny") / "report.html"),
             ContainsSubstring("loss against heads kept in dec.cross") && ContainsSubstring("cross (random)") &&
                 ContainsSubstring("worst (random, highest first, by stack)"));
}
