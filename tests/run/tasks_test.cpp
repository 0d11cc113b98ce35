// Specs with further tasks: learned first, held on to, measured.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

/// Echoes and refusals of one exercise, and what is done with them.
std::string spec_of(const std::string& stages,
                    const std::string& further = R"({"type": "generated", "exercise": {"type": "refuse",
      "vocabulary": 6, "refused": 2, "share": 0.0}, "train": 60, "valid": 20, "test": 20})") {
  return R"({
  "name": "two",
  "seed": 3,
  "task": {"type": "generated", "exercise": {"type": "refuse", "vocabulary": 6, "refused": 2, "share": 1.0}, "train": 60, "valid": 20, "test": 20},
  "tasks": [{"name": "echo", "task": )" +
         further + R"(}],
  "model": {"type": "decoder_only", "d_model": 16, "dropout": 0.0, "decoder": {"layers": 1, "attention": {"heads": 2}},
            "embedding": {"max_length": 64}},
  "stages": )" +
         stages + "\n}\n";
}

struct Done {
  int code;
  std::string err;
  nlohmann::json results;
};

Done run(const Folder& folder, const std::string& spec, const std::string& out = "runs") {
  const auto file = folder.write("x.json", spec);
  const auto done =
      run_program({"run", file.string(), "--out", (folder.path() / out).string(), "--threads", "1", "--quiet"});
  if (done.code != 0) return {done.code, done.err, {}};
  return {0, done.err,
          nlohmann::json::parse(headlab::read_file(only_run(folder.path() / out, "two") / "results.json"))};
}

}  // namespace

TEST_CASE("a stage works on the task that it names, and on the spec's where it names none", "[run]") {
  const Folder folder;
  const auto done = run(folder, spec_of(R"([
      {"train": {"steps": 60, "task": "echo", "batch": {"max_tokens": 200}, "schedule": {"type": "constant", "peak": 0.01}, "log_every": 60}},
      {"evaluate": {"name": "echoes", "task": "echo", "samples": 20}}, {"evaluate": {"name": "refusals", "samples": 20}}])"));
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto& stages = done.results["stages"];
  for (const auto& sample : stages["refusals"]["samples"]) CHECK(sample["reference"] == "REFUSE");
  for (const auto& sample : stages["echoes"]["samples"]) CHECK(sample["reference"] != "REFUSE");
  // It has learned one of them alone.
  CHECK(stages["echoes"]["metrics"]["loss"].get<double>() < stages["refusals"]["metrics"]["loss"].get<double>() - 1);
  CHECK(done.results["tasks"]["echo"]["train"]["examples"] == 60);
}

TEST_CASE("an anchor keeps what the model would forget", "[run][paper-17]") {
  const Folder folder;
  const auto anchored = [](int steps, const std::string& more) {
    return spec_of(R"([{"train": {"steps": )" + std::to_string(steps) +
                   R"(, "batch": {"max_tokens": 100}, "checkpoint_every": 5, "log_every": 5,
        "schedule": {"type": "constant", "peak": 0.01}, "head_masks": [{"type": "dropout", "rate": 0.5}])" +
                   more + R"(}}, {"evaluate": {"name": "echoes", "task": "echo", "metrics": ["loss"]}}])");
  };
  const auto alone = run(folder, anchored(40, ""), "alone"),
             with = run(folder, anchored(40, R"(, "anchor": {"task": "echo", "batch": {"max_rows": 8}})"), "with");
  INFO(with.err);
  REQUIRE(with.code == 0);
  const auto& train = with.results["stages"]["train"];
  CHECK(train["tokens"].get<int64_t>() > alone.results["stages"]["train"]["tokens"].get<int64_t>());
  CHECK(with.results["stages"]["echoes"]["metrics"]["loss"].get<double>() <
        alone.results["stages"]["echoes"]["metrics"]["loss"].get<double>() - 0.5);
}

TEST_CASE("tasks that no stage can use are mistakes that say so", "[run]") {
  const Folder folder;
  CHECK_THAT(
      run(folder, spec_of(R"([{"evaluate": {"task": "ecko"}}])")).err,
      ContainsSubstring(R"(stages[0].evaluate.task: no task is called "ecko"; did you mean "echo"? (tasks: echo))"));
  CHECK_THAT(run(folder, spec_of(R"([{"train": {"steps": 1, "anchor": {"task": "x"}}}])")).err,
             ContainsSubstring(R"(stages[0].train.anchor.task: no task is called "x")"));
  CHECK_THAT(run(folder, spec_of(R"([{"evaluate": {"task": "echo", "metrics": ["bleu"]}}])")).err,
             ContainsSubstring("the task generated has no metric \"bleu\""));
  CHECK_THAT(run(folder, spec_of(R"(["evaluate"])",
                                 R"({"type": "generated", "exercise": "recall", "train": 20, "valid": 5, "test": 5})"))
                 .err,
             ContainsSubstring("tasks[0]: expected the vocabularies of the spec's task"));
  CHECK_THAT(run(folder, spec_of(R"(["evaluate"])",
                                 R"({"type": "generated", "exercise": "copy", "train": 20, "valid": 5, "test": 5})"))
                 .err,
             ContainsSubstring("expected encoder_decoder"));
}

TEST_CASE("a curve with a threshold tells after how many heads it falls, or one more than there are", "[run]") {
  const Folder folder;
  const auto done = run(folder, spec_of(R"([
      {"train": {"steps": 80, "batch": {"max_tokens": 200}, "schedule": {"type": "constant", "peak": 0.01}, "log_every": 80}},
      {"score": {"scorer": "norm"}},
      {"curve": {"name": "high", "scores": "score", "metric": "loss", "fractions": [0, 0.5, 1], "threshold": 1000, "random_sets": 2}},
      {"curve": {"name": "never", "scores": "score", "metric": "accuracy", "fractions": [0, 0.5, 1], "threshold": 0, "random_sets": 2}},
      {"curve": {"name": "none", "scores": "score", "fractions": [0, 1]}}])"));
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto& stages = done.results["stages"];
  CHECK(stages["high"]["falls_after"] == 0);
  CHECK(stages["high"]["random_falls_after"] == 0.0);
  CHECK(stages["never"]["falls_after"] == 3);
  CHECK(stages["never"]["random_falls_after"] == 3.0);
  CHECK(!stages["none"].contains("falls_after"));
}
