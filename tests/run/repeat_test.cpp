#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

/// Three times: score, remove a head of those that are left, train a little.
std::string pruning(bool chained) {
  return R"([{"repeat": {"name": "rounds", "times": 3, "chained": )" + std::string(chained ? "true" : "false") + R"(, "stages": [
      {"score": {"scorer": "norm"}}, {"prune": {"scores": "score", "select": {"count": 1}}},
      {"train": {"steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}}]}},
    {"evaluate": {"metrics": ["loss"]}}])";
}

nlohmann::json run(const Folder& folder, const std::string& stages, const std::string& out) {
  const auto spec = folder.write("x.json", tiny_spec(stages));
  const auto done = run_program({"run", spec.string(), "--out", (folder.path() / out).string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  return nlohmann::json::parse(headlab::read_file(only_run(folder.path() / out, "tiny") / "results.json"));
}

}  // namespace

TEST_CASE("chained repetitions go on from each other, and what follows from the last; others start from the same model", "[run]") {
  const Folder folder;
  const auto chained = run(folder, pruning(true), "chained"), apart = run(folder, pruning(false), "apart");
  std::vector<int> left, each;
  for (const auto& of : chained["stages"]["rounds"]["runs"]) left.push_back(of["prune"]["heads_after"]);
  for (const auto& of : apart["stages"]["rounds"]["runs"]) each.push_back(of["prune"]["heads_after"]);
  CHECK(left == std::vector<int>{9, 8, 7});
  CHECK(each == std::vector<int>{9, 9, 9});
  CHECK(chained["stages"]["evaluate"]["heads"] == 7);
  CHECK(apart["stages"]["evaluate"]["heads"] == 10);
  CHECK(std::filesystem::exists(only_run(folder.path() / "chained", "tiny") / "checkpoints" / "rounds" / "final"));
  // A head that is gone is not scored and chosen again.
  std::set<std::string> removed;
  for (const auto& of : chained["stages"]["rounds"]["runs"]) removed.insert(of["prune"]["removed"][0].get<std::string>());
  CHECK(removed.size() == 3);
}

TEST_CASE("chained repetitions that end with masked heads are refused", "[run]") {
  const Folder folder;
  const auto spec = folder.write("x.json", tiny_spec(R"([{"repeat": {"chained": true, "times": 1, "stages": [{"mask": {"heads": ["enc.self.0.1"]}}]}}])"));
  const auto done = run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring("repeat: the last repetition of \"repeat\" ends with masked heads"));
}
