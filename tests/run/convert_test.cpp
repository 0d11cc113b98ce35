// Converting as a user does it: between trainings, with what goes on from it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

const char* const to_collaborative = R"({"convert": {"to": {"type": "collaborative", "rank": 8}}})";
const char* const evaluate = R"({"evaluate": {"metrics": ["loss"]}})";

std::string train(const std::string& name) {
  return R"({"train": {"name": ")" + name +
         R"(", "steps": 6, "checkpoint_every": 3, "batch": {"max_tokens": 200}, "log_every": 2, "schedule": {"type": "constant", "peak": 0.003}}})";
}

std::filesystem::path run_of(const Folder& folder, const std::string& name, const std::string& stages) {
  const auto out = folder.path() / name;
  const auto spec = folder.write(name + ".json", tiny_spec(stages));
  const auto done = run_program({"run", spec.string(), "--out", out.string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  return only_run(out, "tiny");
}

nlohmann::json results_of(const std::filesystem::path& run) {
  return nlohmann::json::parse(headlab::read_file(run / "results.json"))["stages"];
}

}  // namespace

TEST_CASE("a converted model is trained on, evaluated, pruned, averaged, exported and used again from its folder",
          "[run]") {
  const Folder folder;
  const auto run = run_of(
      folder, "all",
      "[" + train("first") + ", " + to_collaborative + ", " + evaluate + ", " + train("tuned") +
          R"(, {"average": {"model": "tuned", "last": 1}}, {"prune": {"heads": ["enc.self.0.1"]}}, {"evaluate": {"name": "at_end", "metrics": ["loss"]}}, {"export": {"compare": 5}}])");
  const auto stages = results_of(run);
  CHECK(stages["convert"]["to"] == "collaborative");
  CHECK(stages["convert"]["parameters_after"] != stages["convert"]["parameters_before"]);
  CHECK(stages["convert"]["largest"]["error"].get<double>() < 1);
  CHECK(stages["export"]["different"] == 0);
  for (const std::string stage : {"convert", "tuned", "average", "prune"}) {
    const auto state = nlohmann::json::parse(headlab::read_file(run / "checkpoints" / stage / "final" / "state.json"));
    CHECK(state["model"]["encoder"]["per_layer"][0]["attention"]["project"]["type"] == "collaborative");
  }
  const auto shown = run_program({"show", run.string()});
  INFO(shown.err);
  CHECK(shown.code == 0);
  for (const std::string stage : {"first", "convert", "prune"}) {
    const auto said = run_program({"translate", run.string(), "--stage", stage}, 0, "the cat sleeps\n");
    INFO(said.err);
    CHECK(said.code == 0);
  }
}

TEST_CASE("a run that breaks off after a conversion ends with the bits of one that was left alone", "[run]") {
  const Folder folder;
  const auto stages = "[" + train("first") + ", " + to_collaborative + ", " + train("tuned") + ", " + evaluate + "]";
  const auto whole = run_of(folder, "whole", stages), broken = run_of(folder, "broken", stages);
  // As a crash in the second training leaves it: what came later is gone, the conversion is in its file alone.
  auto results = nlohmann::ordered_json::parse(headlab::read_file(broken / "results.json"));
  results["stages"].erase("tuned");
  results["stages"].erase("evaluate");
  headlab::write_file_atomically(broken / "results.json", results.dump());
  std::filesystem::remove_all(broken / "checkpoints" / "tuned" / "final");
  std::filesystem::remove_all(broken / "checkpoints" / "tuned" / "step-00000006");
  const auto again = run_of(folder, "broken", stages);
  const auto weights = [](const std::filesystem::path& run) {
    return headlab::read_file(run / "checkpoints" / "tuned" / "final" / "model.safetensors");
  };
  CHECK(weights(again) == weights(whole));
  CHECK(results_of(again)["evaluate"]["metrics"] == results_of(whole)["evaluate"]["metrics"]);
}

TEST_CASE("masked heads are not converted, and what can't be converted is told by name", "[run]") {
  const Folder folder;
  const auto refused = [&](const std::string& stages) {
    const auto spec = folder.write("x.json", tiny_spec(stages));
    const auto done = run_program(
        {"run", spec.string(), "--out", (folder.path() / "out").string(), "--threads", "1", "--quiet", "--fresh"});
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK_THAT(refused(R"([{"mask": {"heads": ["enc.self.0.1"]}}, )" + std::string(to_collaborative) + "]"),
             ContainsSubstring("has masked heads; prune them"));
  CHECK_THAT(refused(R"([{"convert": {"to": "collaborative"}}])"), ContainsSubstring("rank"));
  CHECK_THAT(
      refused(
          R"([{"convert": {"name": "a", "to": {"type": "collaborative", "rank": 4}}}, {"convert": {"name": "b", "to": "standard"}}])"),
      ContainsSubstring("convert: enc.self.0: expected the project standard or grouped, got collaborative"));
}
