#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

const std::string quick_train = R"({"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}})";

}  // namespace

TEST_CASE("bad usage and bad specs end with 2, and nothing is written") {
  Folder folder;
  const auto out = (folder.path() / "runs").string();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"fly"},
                                                    {"run"},
                                                    {"run", "x.json", "--colour", "red"},
                                                    {"list", "gait"},
                                                    {"show", folder.path().string()}}) {
    const auto run = run_program(arguments);
    CHECK(run.code == (arguments.size() == 2 && arguments[0] == "show" ? 1 : 2));
    CHECK(!run.err.empty());
    CHECK(run.out.empty());
  }
  const auto spec = folder.write("wrong.json", tiny_spec(R"([{"train": {"stepz": 3}}])"));
  const auto run = run_program({"run", spec.string(), "--out", out});
  CHECK(run.code == 2);
  CHECK(run.err.find("wrong.json:16:25: stages[0].train.stepz: unknown key; did you mean \"steps\"?") !=
        std::string::npos);
  CHECK(run.err.find("1 mistake, nothing was run") != std::string::npos);
  CHECK(!std::filesystem::exists(out));
  CHECK(run_program({"run", (folder.path() / "none.json").string()}).code == 2);
}

TEST_CASE("an expectation that does not hold ends with 3, one that holds with 0") {
  Folder folder;
  const auto out = (folder.path() / "runs").string();
  const auto stages = "[" + quick_train + R"(, {"evaluate": {"metrics": ["loss"]}}])";
  const auto spec_of = [&](const std::string& bound) {
    return folder.write(
        "x.json",
        tiny_spec(stages,
                  ", \"expect\": [{\"claim\": \"it learns\", \"that\": \"evaluate.loss\", \"below\": " + bound + "}]"));
  };
  const auto fails = run_program({"run", spec_of("0.001").string(), "--out", out});
  CHECK(fails.code == 3);
  CHECK(fails.out.find("does not hold  evaluate.loss < 0.001") != std::string::npos);
  CHECK(run_program({"run", spec_of("100").string(), "--out", out}).code == 0);
}

TEST_CASE("--json prints the results and nothing else; --set and --quiet are heard") {
  Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec("[" + quick_train + R"(, {"evaluate": {"metrics": ["loss", "bleu"], "search": {"beam": 2}}}])"));
  const auto out = (folder.path() / "runs").string();
  const auto run = run_program({"run", spec.string(), "--out", out, "--json", "--set", "stages[0].train.steps=2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto results = nlohmann::json::parse(run.out);
  CHECK(results["stages"]["train"]["steps"] == 2);
  CHECK(results["stages"]["evaluate"]["metrics"].contains("bleu"));
  CHECK(std::filesystem::exists(std::filesystem::path(std::string(results["folder"])) / "report.html"));
  const auto quiet = run_program({"run", spec.string(), "--out", out, "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
}

TEST_CASE("a pruned run can be shown and translates what it is given, line by line") {
  Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec("[" + quick_train + R"(, {"prune": {"heads": ["enc.self.0.1", "dec.cross.0.0", "dec.cross.0.1"]}}])"));
  const auto out = folder.path() / "runs";
  REQUIRE(run_program({"run", spec.string(), "--out", out.string(), "--quiet"}).code == 0);
  const auto run = only_run(out, "tiny").string();
  const auto shown = run_program({"show", run});
  CHECK(shown.code == 0);
  CHECK(shown.out.find("enc.self.0     0 2 3") != std::string::npos);
  CHECK(shown.out.find("dec.cross.0    none") != std::string::npos);
  const auto translated = run_program({"translate", run, "--beam", "1"}, 0, "The dog sleeps.\n\nA cat.\n");
  CHECK(translated.code == 0);
  CHECK(std::count(translated.out.begin(), translated.out.end(), '\n') == 3);
  const auto missing = run_program({"translate", run, "--stage", "best"}, 0, "");
  CHECK(missing.code == 2);
  CHECK(missing.err.find("no stage \"best\" with a model; those with one: train, prune") != std::string::npos);
}

TEST_CASE("a spec in the working folder is run by its bare name") {
  Folder folder;
  folder.write("x.json", tiny_spec("[" + quick_train + "]"));
  const auto command = headlab_command({"run", "x.json", "--quiet"});
  std::string line = "cd '" + folder.path().string() + "' &&";
  for (const auto& word : command) line += " '" + word + "'";
  const auto run = Running({"/bin/sh", "-c", line}).wait();
  INFO(run.err);
  REQUIRE(run.code == 0);
  std::ifstream file(only_run(folder.path() / "runs", "tiny") / "results.json");
  CHECK(nlohmann::json::parse(file)["spec_folder"] == folder.path().string());
}

TEST_CASE("every slot has a name of its own, by which its entries are listed") {
  const auto all = run_program({"list"});
  REQUIRE(all.code == 0);
  std::set<std::string> names;
  std::istringstream lines(all.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.front() == ' ') continue;  // the line before goes on
    const auto name = line.substr(0, line.find(' '));
    CHECK(names.insert(name).second);
  }
  for (const auto* slot : {"scorer", "measure", "head_mask", "mix"}) CHECK(names.count(slot) == 1);
  CHECK(run_program({"list", "scorer.gradient", "--full"}).out.find("1905.10650") != std::string::npos);
}

TEST_CASE("the schema of specs is JSON and knows every stage") {
  const auto run = run_program({"schema"});
  REQUIRE(run.code == 0);
  const auto schema = nlohmann::json::parse(run.out);
  CHECK(schema.contains("$schema"));
  for (const auto* stage : {"train", "evaluate", "score", "ablate", "mask", "prune", "curve", "export", "repeat"})
    CHECK(run.out.find("\"" + std::string(stage) + "\"") != std::string::npos);
}

TEST_CASE("a sweep runs each of its specs, and a part of it some") {
  Folder folder;
  const auto spec = folder.write("x.json", tiny_spec("[" + quick_train + "]", R"(, "sweep": {"seed": [1, 2, 3]})"));
  const auto out = folder.path() / "runs";
  REQUIRE(run_program({"run", spec.string(), "--out", out.string(), "--quiet", "--part", "1/2"}).code == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(out / "tiny"), {}) == 2);
  REQUIRE(run_program({"run", spec.string(), "--out", out.string(), "--quiet"}).code == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(out / "tiny"), {}) ==
        6);  // and experiment.json, summary.csv and report.html
}

TEST_CASE("arms are compared over seeds, and reproduce writes the table of what holds") {
  Folder folder;
  const auto out = (folder.path() / "runs").string();
  const auto spec = folder.write("tiny.json", tiny_spec(R"([
    {"train": {"steps": 20, "batch": {"max_tokens": 300}, "schedule": {"type": "constant", "peak": 0.01}, "log_every": 10}},
    {"evaluate": {"metrics": ["loss"]}}])",
                                                        R"(,
  "arms": {"more": {}, "none": {"stages[0].train.steps": 0}}, "seeds": [1, 2, 3],
  "compare": [
    {"claim": "training lowers the loss", "that": "more.evaluate.loss", "below": "none.evaluate.loss"},
    {"claim": "twenty steps are enough | really", "that": "more.evaluate.loss", "below": 0.01}
  ])"));
  const auto table = folder.write("table.md", "before\n<!-- begin claims -->\nold\n<!-- end claims -->\nafter\n");
  const auto run =
      run_program({"reproduce", folder.path().string(), "--out", out, "--quiet", "--table", table.string()});
  INFO(run.err << run.out);
  CHECK(run.code == 3);
  CHECK(run.out.find("training lowers the loss") != std::string::npos);
  std::ifstream file(table);
  const std::string written((std::istreambuf_iterator<char>(file)), {});
  CHECK(written.find("before\n<!-- begin claims -->\n| spec | statement |") == 0);
  CHECK(written.find("| tiny.json | training lowers the loss | `more.evaluate.loss < none.evaluate.loss` | ") !=
        std::string::npos);
  CHECK(written.find("3 seeds | holds |") != std::string::npos);
  CHECK(written.find("twenty steps are enough \\| really | `more.evaluate.loss < 0.01` | ") != std::string::npos);
  CHECK(written.find("3 seeds | **does not hold** |\n<!-- end claims -->\nafter\n") != std::string::npos);
  const auto json = nlohmann::json::parse(std::ifstream(std::filesystem::path(out) / "tiny" / "experiment.json"));
  CHECK(json["runs"].size() == 6);
  CHECK(json["compare"][0]["differences"].size() == 3);
  CHECK(json["compare"][0]["holds"] == true);
  // Other claims are judged on what is there: no run is made again.
  const auto again = run_program({"run", spec.string(), "--out", out, "--set", "compare[1].below=1000"});
  CHECK(again.code == 0);
  CHECK(again.out.find("done before") != std::string::npos);
  CHECK(again.out.find("s, loss") == std::string::npos);
  CHECK(run_program({"reproduce", spec.string(), "--out", out, "--quiet", "--table", spec.string()}).code == 2);
}

TEST_CASE("runs side by side give what they give one after another", "[cli]") {
  const Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec(
          R"([{"train": {"steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"metrics": ["loss"]}}])",
          R"x(, "arms": {"full": {}, "unscaled": {"model.embedding.scale": false}}, "seeds": [1, 2],
    "compare": [{"claim": "another loss", "that": "abs(full.evaluate.loss - unscaled.evaluate.loss)", "above": -1}])x"));
  const auto run = [&](const char* out, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"run", spec.string(), "--out", (folder.path() / out).string(), "--threads", "1", "--quiet"});
    const auto done = run_program(more);
    INFO(done.err);
    REQUIRE(done.code == 0);
  };
  run("one", {});
  run("two", {"--jobs", "2"});
  const auto compared = [&](const char* out) {
    return nlohmann::json::parse(headlab::read_file(folder.path() / out / "tiny" / "experiment.json")).at("compare");
  };
  CHECK(compared("one") == compared("two"));
  CHECK(compared("one").at(0).at("differences").size() == 2);
  // A line for each run as it ends, from the processes; then all of them, put together.
  const auto told =
      run_program({"run", spec.string(), "--out", (folder.path() / "three").string(), "--threads", "1", "--jobs", "2"});
  CHECK(told.code == 0);
  const auto before = told.out.substr(0, told.out.find("  data "));
  for (const auto* of_run : {"tiny (full, seed=1)  report: ", "tiny (unscaled, seed=2)  report: "})
    CHECK_THAT(before, ContainsSubstring(of_run));
  const auto both = run_program({"run", spec.string(), "--jobs", "2", "--part", "1/2"});
  CHECK(both.code == 2);
  CHECK(both.err == "run: --part and --jobs: expected one of them; --jobs runs all parts itself\n");
  const auto failed = run_program({"run", spec.string(), "--jobs", "2", "--threads", "1", "--out",
                                   (folder.path() / "none").string(), "--set", "model.embedding.max_length=3"});
  CHECK(failed.code == 1);
  CHECK_THAT(
      failed.err,
      ContainsSubstring("model.embedding.max_length: expected at least ") &&
          ContainsSubstring("run: 2 of 2 processes ended before their runs were done; the same command goes on\n"));
}

TEST_CASE("what an attention's benchmark compares gives equal answers", "[cli]") {
  for (const auto* name : {"pruned", "routing", "half-windows"}) {
    const auto run = run_program({"bench", "attention", name, "--pairs", "1"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto line = nlohmann::json::parse(run.out);
    CHECK(line["case"] == name);
    CHECK(line["largest_difference"] < 1e-3);
    CHECK(line["ratios"].size() == 1);
  }
  CHECK(run_program({"bench", "attention", "none"}).code == 2);
}
