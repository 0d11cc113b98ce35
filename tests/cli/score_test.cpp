#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream all(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

std::filesystem::path trained(const Folder& folder, const std::string& spec, const std::string& name) {
  const auto file = folder.write(name + ".json", spec);
  const auto done =
      run_program({"run", file.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  return only_run(folder.path() / "runs", name);
}

}  // namespace

TEST_CASE("scores of translations add up to the loss that evaluation finds", "[cli]") {
  const Folder folder;
  const auto run = trained(
      folder,
      tiny_spec(
          R"([{"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"split": "valid", "metrics": ["loss"]}}])"),
      "tiny");
  const auto results = nlohmann::json::parse(headlab::read_file(run / "results.json"));
  // The same grammar as files.
  REQUIRE(run_program({"data", "grammar", "--out", (folder.path() / "data").string(), "--train", "300", "--valid", "20",
                       "--test", "20"})
              .code == 0);
  const auto sources = lines_of(headlab::read_file(folder.path() / "data/valid.en")),
             targets = lines_of(headlab::read_file(folder.path() / "data/valid.de"));
  REQUIRE(sources.size() == 20);
  std::string input;
  for (std::size_t i = 0; i < sources.size(); ++i) input += sources[i] + "\t" + targets[i] + "\n";
  const auto done = run_program({"score", run.string(), "--batch", "7"}, 0, input);
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto lines = lines_of(done.out);
  REQUIRE(lines.size() == 20);
  double sum = 0, tokens = 0;
  for (const auto& line : lines) {
    std::istringstream fields(line);
    double score = 0, count = 0;
    fields >> score >> count;
    CHECK(score < 0);
    sum += score;
    tokens += count;
  }
  CHECK(-sum / tokens == Approx(results["stages"]["evaluate"]["metrics"]["loss"].get<double>()).epsilon(1e-5));

  const auto json = run_program({"score", run.string(), "--json"}, 0, input);
  REQUIRE(json.code == 0);
  const auto objects = lines_of(json.out);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto object = nlohmann::json::parse(objects[i]);
    double each = 0;
    for (const auto& token : object["each"]) each += token[1].get<double>();
    CHECK(each == Approx(object["log_probability"].get<double>()));
    CHECK(object["each"].size() == object["tokens"]);
    CHECK(object["each"].back()[0] == "</s>");
    CHECK(object["perplexity"].get<double>() == Approx(std::exp(-each / object["tokens"].get<double>())));
    CHECK(std::stod(lines[i]) == Approx(each).margin(1e-4));
  }
  const auto without = run_program({"score", run.string()}, 0, "a\tb\nno tab\n");
  CHECK(without.code == 2);
  CHECK_THAT(without.err, ContainsSubstring("standard input, line 2: expected a source, a tab and its translation"));
}

TEST_CASE("a language model's lines are scored token by token; a text's score is that of its parts in turn", "[cli]") {
  const Folder folder;
  const auto run = trained(
      folder,
      R"({"name": "lm", "task": {"type": "language_model", "data": {"type": "grammar", "train": 200, "valid": 20, "test": 20}, "units": "characters", "block": 32},
      "model": {"type": "decoder_only", "d_model": 16, "decoder": {"layers": 1, "attention": {"heads": 2}}, "embedding": {"max_length": 64}},
      "stages": [{"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}}]})",
      "lm");
  const auto done = run_program({"score", run.string(), "--json"}, 0, "the\nthe dog\n\n");
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto lines = lines_of(done.out);
  REQUIRE(lines.size() == 3);
  const auto shorter = nlohmann::json::parse(lines[0]), longer = nlohmann::json::parse(lines[1]),
             empty = nlohmann::json::parse(lines[2]);
  CHECK(shorter["tokens"] == 3);
  CHECK(longer["tokens"] == 7);
  for (int t = 0; t < 3; ++t)
    CHECK(longer["each"][t][1].get<double>() == Approx(shorter["each"][t][1].get<double>()).margin(1e-5));
  CHECK(longer["each"][4][0] == "d");
  CHECK(empty["tokens"] == 0);
  CHECK(empty["perplexity"].is_null());
}
