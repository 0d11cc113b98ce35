#include <algorithm>
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
  return R"([{"repeat": {"name": "rounds", "times": 3, "chained": )" + std::string(chained ? "true" : "false") +
         R"(, "stages": [
      {"score": {"scorer": "norm"}}, {"prune": {"scores": "score", "select": {"count": 1}}},
      {"train": {"steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}}]}},
    {"evaluate": {"metrics": ["loss"]}}])";
}

nlohmann::json run(const Folder& folder, const std::string& stages, const std::string& out) {
  const auto spec = folder.write("x.json", tiny_spec(stages));
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / out).string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  return nlohmann::json::parse(headlab::read_file(only_run(folder.path() / out, "tiny") / "results.json"));
}

}  // namespace

TEST_CASE("chained repetitions go on from each other, and what follows from the last; others start from the same model",
          "[run]") {
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
  for (const auto& of : chained["stages"]["rounds"]["runs"])
    removed.insert(of["prune"]["removed"][0].get<std::string>());
  CHECK(removed.size() == 3);
}

TEST_CASE("repetitions set what is said for each: as many as there are, and otherwise alike", "[run]") {
  const Folder folder;
  const auto results =
      run(folder, R"([{"train": {"name": "base", "steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}},
      {"score": {"scorer": "norm"}},
      {"repeat": {"name": "shares", "model": "base", "with": [{"stages[0].prune.select.count": 1}, {"stages[0].prune.select.count": 4, "stages[1].evaluate.metrics": ["loss", "accuracy"]}], "stages": [
        {"prune": {"scores": "score", "select": {"count": 2}}}, {"evaluate": {"metrics": ["loss"]}}]}}])",
          "with");
  const auto& shares = results["stages"]["shares"];
  REQUIRE(shares["runs"].size() == 2);
  CHECK(shares["runs"][0]["prune"]["heads_after"] == 9);
  CHECK(shares["runs"][1]["prune"]["heads_after"] == 6);
  CHECK(!shares["runs"][0]["evaluate"]["metrics"].contains("accuracy"));
  CHECK(shares["runs"][1]["evaluate"]["metrics"].contains("accuracy"));
  CHECK(shares["with"][1]["stages[0].prune.select.count"] == 4);
}

TEST_CASE("what a repetition sets is checked before anything runs", "[run]") {
  const Folder folder;
  const auto message = [&](const std::string& repeat) {
    const auto spec = folder.write("x.json", tiny_spec("[{\"repeat\": " + repeat + "}]"));
    const auto done = run_program({"check", spec.string()});
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK_THAT(
      message(R"({"with": [{"stages[0].train.stepz": 3}], "stages": ["train"]})"),
      ContainsSubstring("stages[0].repeat.with[0]: stages[0].train.stepz: unknown key; did you mean \"steps\"?"));
  CHECK_THAT(
      message(R"({"with": [{"stages[0].train.steps": 1}, {"stages[0].train.steps": "x"}], "stages": ["train"]})"),
      ContainsSubstring("with[1]: stages[0].train.steps: expected an integer"));
  CHECK_THAT(message(R"({"with": [{"train.steps": 3}], "stages": ["train"]})"),
             ContainsSubstring("with[0]: train.steps: expected a key of the repeated stages"));
  CHECK_THAT(
      message(
          R"({"with": [{"stages[0].prune.scores": "none"}], "stages": [{"prune": {"random": true, "select": {"count": 1}}}]})"),
      ContainsSubstring("expected exactly one way to choose heads"));
  CHECK_THAT(message(R"({"with": [{"stages[0].evaluate.model": "later"}], "stages": ["evaluate"]})"),
             ContainsSubstring("no earlier stage is called \"later\""));
  CHECK_THAT(message(R"({"times": 2, "with": [{"stages[0].train.steps": 3}], "stages": ["train"]})"),
             ContainsSubstring("times: goes without \"with\""));
  CHECK_THAT(message(R"({"with": [3], "stages": ["train"]})"),
             ContainsSubstring("with: expected a list of objects {key: value}"));
}

TEST_CASE("chained repetitions that end with masked heads are refused", "[run]") {
  const Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec(R"([{"repeat": {"chained": true, "times": 1, "stages": [{"mask": {"heads": ["enc.self.0.1"]}}]}}])"));
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring("repeat: the last repetition of \"repeat\" ends with masked heads"));
}

TEST_CASE("an ablation tells how many heads can be spared alone", "[run]") {
  const Folder folder;
  const auto results =
      run(folder, R"([{"train": {"name": "base", "steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}},
      {"ablate": {"metric": "loss", "evaluate": {"split": "valid"}}}])",
          "all");
  std::vector<double> losses;
  for (const auto& [head, values] : results["stages"]["ablate"]["heads"].items()) losses.push_back(values["loss"]);
  std::sort(losses.begin(), losses.end());
  const auto bound = (losses[3] + losses[4]) / 2;
  const auto told = run(folder,
                        R"([{"train": {"name": "base", "steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}},
      {"ablate": {"metric": "loss", "spare": )" +
                            nlohmann::json(bound).dump() + R"(, "evaluate": {"split": "valid"}}}])",
                        "told");
  CHECK(!results["stages"]["ablate"].contains("spare"));
  CHECK(told["stages"]["ablate"]["spare"] == 4);
}

TEST_CASE("a claim about what is not among the results is told when results and report are written", "[run]") {
  const Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec(
          R"([{"train": {"steps": 1, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"metrics": ["loss"]}}])",
          R"(, "expect": [{"claim": "it is none", "that": "evaluate.los", "below": 9}, {"claim": "it is some", "that": "evaluate.loss", "above": 0}])"));
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  CHECK(done.code == 1);
  CHECK_THAT(done.err,
             ContainsSubstring(
                 "expect, \"it is none\": \"evaluate.los\" is not among the results; did you mean \"evaluate.loss\"?"));
  const auto run = only_run(folder.path() / "runs", "tiny");
  CHECK(std::filesystem::exists(run / "report.html"));
  CHECK(nlohmann::json::parse(headlab::read_file(run / "results.json"))["expect"].size() == 1);
}
