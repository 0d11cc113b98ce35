// Faults that users of other systems have met, where a user of the program would meet them; each named after its case.

#include <csignal>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/tensor/torch.h"
#include "src/run/saved_model.h"
#include "tests/catch.h"
#include "tests/faults/tiny_files.h"

using namespace headlab;
using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

nlohmann::json results_of(const std::filesystem::path& run) {
  return nlohmann::json::parse(read_file(run / "results.json"));
}

/// The loss over the test split of a run's model, loaded by this process.
double loss_after_reload(const std::filesystem::path& run, const std::string& stage) {
  const auto opened = open_run(run, stage, "cpu", true);
  EvaluateOptions options;
  options.metrics = {"loss"};
  return opened.task->evaluate(*opened.model, options, {}).metrics.at("loss");
}

const auto same = [](double value) { return Catch::Detail::Approx(value).epsilon(1e-6); };

/// A value of results.json that must be there.
double loss_in(const nlohmann::json& results, const std::string& stage) {
  return results.at("stages").at(stage).at("metrics").at("loss");
}

}  // namespace

TEST_CASE("uneven-reload: a run's unevenly pruned model is loaded by another process with the same heads and outputs",
          "[cases]") {
  const TinyFiles files;
  const auto spec =
      files.spec("[" + train_stage(3) + R"(, {"prune": {"heads": ["enc.self.0.1", "enc.self.1.0", "enc.self.1.2",
      "enc.self.1.3", "dec.cross.0.0"]}}, {"evaluate": {"metrics": ["loss", "bleu"], "model": "prune"}}])");
  const auto run = run_program({"run", spec, "--out", files.out(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto opened = open_run(files.run(), "prune", "cpu");
  CHECK((opened.model->heads() == HeadTable{{Stack::enc_self, {{0, 2, 3}, {1}}},
                                            {Stack::dec_self, {{0, 1, 2, 3}, {0, 1, 2, 3}}},
                                            {Stack::dec_cross, {{1}, {0, 1}}}}));
  CHECK(loss_after_reload(files.run(), "prune") == same(loss_in(results_of(files.run()), "evaluate")));
  // A third process writes the translations that the first evaluated.
  const auto translated = run_program({"translate", files.run().string()}, 0, TinyFiles::lines(8, 200, false));
  CHECK(translated.code == 0);
  CHECK(translated.out == read_file(files.run() / "outputs" / "evaluate.txt"));
}

TEST_CASE("prune-whole-layer: all heads of a layer are pruned, saved, loaded and exported as the masked model",
          "[cases]") {
  const TinyFiles files;
  const std::string heads =
      R"(["enc.self.1.0", "enc.self.1.1", "enc.self.1.2", "enc.self.1.3", "dec.self.1.0", "dec.self.1.1",
      "dec.self.1.2", "dec.self.1.3", "dec.cross.1.0", "dec.cross.1.1"])";
  const auto spec = files.spec(
      "[" + train_stage(3) + R"(, {"mask": {"heads": )" + heads +
      R"(}}, {"evaluate": {"name": "masked", "metrics": ["loss"]}}, {"prune": {"model": "train", "heads": )" + heads +
      R"(}}, {"evaluate": {"name": "pruned", "metrics": ["loss"]}}, {"export": {"compare": 4}}])");
  const auto run = run_program({"run", spec, "--out", files.out(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto results = results_of(files.run());
  CHECK(loss_in(results, "pruned") == Catch::Detail::Approx(loss_in(results, "masked")).epsilon(1e-5));
  CHECK(loss_after_reload(files.run(), "prune") == same(loss_in(results, "pruned")));
  CHECK(results["stages"]["export"]["different"] == 0);
  CHECK_THAT(run_program({"show", files.run().string()}).out,
             ContainsSubstring("enc.self.1     none") && ContainsSubstring("dec.cross.1    none"));
}

TEST_CASE(
    "line-counts: only a line feed ends a line of a data file, and files of 10 and 11 lines are an error with both",
    "[cases]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(1) + "]");
  // A lone CR, a vertical tab, a form feed, NEL, LINE SEPARATOR, PARAGRAPH SEPARATOR; CR LF at one end.
  files.write("test.src", "a\rb\nc\vd\ne\ff\ng\u0085h\nk\u2028l\na\u2029b\nc\r\nd\ne\nf\n");
  files.write("test.tgt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
  const auto even = run_program({"run", spec, "--out", files.out(), "--quiet"});
  INFO(even.err);
  REQUIRE(even.code == 0);
  const auto data = results_of(files.run())["data"];
  CHECK(data["test"]["lines"] == 10);
  CHECK(data["test"]["pairs"] == 10);
  CHECK(data["test"]["crlf"] == 1);
  files.write("test.tgt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
  const auto uneven = run_program({"run", spec, "--out", files.out(), "--quiet", "--fresh"});
  CHECK(uneven.code == 1);
  CHECK(uneven.err == (files / "test.src").string() + " has 10 lines, " + (files / "test.tgt").string() +
                          " has 11; expected translations line by line\n");
}

TEST_CASE("dropped-keys: unknown, misplaced, repeated and mistyped keys end with 2, with key, place and suggestion",
          "[cases]") {
  const Folder folder;
  const auto out = (folder.path() / "runs").string();
  const std::vector<std::pair<std::string, std::string>> rows{
      {R"({"name": "x", "stages": ["train"], "learning_rate": 0.1})",
       "x.json:1:36: learning_rate: unknown key (accepted: name, question, paper, seed,"},
      {R"({"name": "x", "stages": [{"train": {"learning_rate": 0.1}}]})",
       "x.json:1:37: stages[0].train.learning_rate: unknown key (accepted by train: "},
      {R"({"name": "x", "stages": [{"train": {"num-epochs": 3}}]})",
       "x.json:1:37: stages[0].train.num-epochs: unknown key (accepted by train: "},
      {R"({"name": "x", "stages": [{"train": {"stps": 3}}]})",
       "x.json:1:37: stages[0].train.stps: unknown key; did you mean \"steps\"?"},
      {R"({"name": "x", "stages": ["train"], "seed": 1, "seed": 2})",
       "x.json:1:47: seed: repeated key; it stands first at line 1, column 36"},
      {R"({"name": "x", "stages": [{"train": {"steps": "100"}}]})",
       "x.json:1:46: stages[0].train.steps: expected an integer of at least 0 (steps), got \"100\""},
      {R"({"name": "x", "stages": [{"train": {"clip": "1.0"}}]})",
       "x.json:1:45: stages[0].train.clip: expected a number of at least 0, got \"1.0\""},
      {R"({"name": "x", "stages": [{"train": {"steps": 1.5}}]})",
       "x.json:1:46: stages[0].train.steps: expected an integer of at least 0 (steps), got 1.5"}};
  // One program checks them all, each by its name.
  std::vector<std::string> arguments{"check"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fs::create_directory(folder.path() / std::to_string(i));
    arguments.push_back(folder.write(std::to_string(i) + "/x.json", rows[i].first).string());
  }
  const auto checked = run_program(arguments);
  CHECK(checked.code == 2);
  CHECK(checked.out.empty());
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].first << "\n" << checked.err);
    at = checked.err.find((folder.path() / std::to_string(i)).string() + "/" + rows[i].second, at);
    REQUIRE(at != std::string::npos);
    const auto end = checked.err.find('\n', at) + 1;
    CHECK(checked.err.substr(end, 27) == "1 mistake, nothing was run\n");
  }
  const auto run = run_program({"run", arguments[1], "--out", out});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, ContainsSubstring(rows[0].second));
  const auto sound = folder.write("x.json", R"({"name": "x", "stages": ["train"]})").string();
  const auto set =
      run_program({"run", sound, "--out", out, "--set", "trainn.steps=3", "--set", "stages[0].train.steps=many"});
  CHECK(set.code == 2);
  CHECK_THAT(set.err,
             ContainsSubstring("--set trainn.steps=3: trainn: unknown key") &&
                 ContainsSubstring(
                     "--set stages[0].train.steps=many: expected an integer of at least 0 (steps), got \"many\"") &&
                 ContainsSubstring("2 mistakes, nothing was run"));
  CHECK(!std::filesystem::exists(out));
}

TEST_CASE("too-long: a model shorter than its data, and a line too long to translate, are told with both lengths",
          "[cases]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(1) + "]");
  const auto run = run_program({"run", spec, "--out", files.out(), "--quiet", "--set", "model.embedding.max_length=5"});
  CHECK(run.code == 2);
  CHECK(run.err == "model.embedding.max_length: expected at least 6, the longest text of the data in tokens, got 5\n");
  REQUIRE(run_program({"run", spec, "--out", (files / "good").string(), "--quiet"}).code == 0);
  std::string line = "a";
  for (int i = 0; i < 24; ++i) line += " a";
  const auto folder = only_run(files / "good", "tiny").string();
  const auto translated = run_program({"translate", folder}, 0, "a b\n" + line + "\n");
  CHECK(translated.code == 1);
  CHECK_THAT(translated.err, ContainsSubstring("source 2: expected at most 24 tokens with eos, got 26"));
  CHECK(run_program({"translate", folder}, 0, line.substr(4) + "\n").code == 0);
}

TEST_CASE(
    "resume-resets: a run that is stopped by a signal goes on with the rate, order and losses of one that was not",
    "[cases]") {
  const TinyFiles files;
  const auto spec =
      files.spec(R"([{"train": {"steps": 120, "batch": {"max_tokens": 60}, "log_every": 1, "checkpoint_every": 10,
      "schedule": {"type": "transformer", "warmup": 30}}}])");
  const auto rows = [](const std::filesystem::path& out) {
    std::string kept;
    std::istringstream lines(read_file(only_run(out, "tiny") / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) kept += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
    return kept;
  };
  const auto weights = [](const std::filesystem::path& out) {
    return read_file(only_run(out, "tiny") / "checkpoints" / "train" / "final" / "model.safetensors");
  };
  const auto whole = files / "whole", broken = files / "broken";
  REQUIRE(run_program({"run", spec, "--out", whole.string(), "--threads", "1"}).code == 0);
  Running first(headlab_command({"run", spec, "--out", broken.string(), "--threads", "1"}));
  const auto at_step_10 = [&] {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(broken / "tiny", none))
      if (std::filesystem::exists(entry.path() / "checkpoints" / "train" / "step-00000010")) return true;
    return first.ended();
  };
  REQUIRE(wait_until(at_step_10));
  first.send(SIGKILL);
  const auto killed = first.wait();
  CHECK(killed.code == -SIGKILL);  // else it was done before: more steps are needed
  const auto rest = run_program({"run", spec, "--out", broken.string(), "--threads", "1"});
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  CHECK(rows(whole) == rows(broken));
  CHECK(weights(whole) == weights(broken));
}
