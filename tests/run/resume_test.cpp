#include <filesystem>
#include <fstream>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "modules/base/random.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

const char* stages = R"([
    {"train": {"steps": STEPS, "batch": {"max_tokens": 200}, "log_every": 7, "checkpoint_every": CHECKPOINT,
               "schedule": {"type": "constant", "peak": 0.003}}},
    {"evaluate": {"metrics": ["loss"]}}
  ])";

std::string spec_with(const std::string& checkpoint_every, const std::string& steps = "40") {
  std::string text = tiny_spec(stages);
  text.replace(text.find("CHECKPOINT"), 10, checkpoint_every);
  text.replace(text.find("STEPS"), 5, steps);
  return text;
}

std::string weights_of(const std::filesystem::path& out) {
  return read_file(only_run(out, "tiny") / "checkpoints" / "train" / "final" / "model.safetensors");
}

// metrics.jsonl without what the clock says.
std::string metrics_of(const std::filesystem::path& out) {
  std::istringstream lines(read_file(only_run(out, "tiny") / "metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(lines, line);) kept += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
  return kept;
}

}  // namespace

TEST_CASE("the same spec twice gives the same weights bit for bit") {
  Folder folder;
  const auto spec = folder.write("tiny.json", spec_with("0"));
  for (const auto* out : {"a", "b"}) {
    const auto run = run_program({"run", spec.string(), "--out", (folder.path() / out).string(), "--threads", "2"});
    INFO(run.err);
    REQUIRE(run.code == 0);
  }
  CHECK(weights_of(folder.path() / "a") == weights_of(folder.path() / "b"));
  CHECK(metrics_of(folder.path() / "a") == metrics_of(folder.path() / "b"));
}

TEST_CASE("killed at any moment and started again, a run ends with the bits of one that was left alone") {
  Folder folder;
  // A checkpoint after each step: about half of the time is spent writing one.
  const auto spec = folder.write("tiny.json", spec_with("1", "150"));
  const auto whole = folder.path() / "whole", broken = folder.path() / "broken";
  REQUIRE(run_program({"run", spec.string(), "--out", whole.string(), "--threads", "2"}).code == 0);
  Random random(7);
  int kills = 0, code = -1;
  double longest = 0.4;
  for (int i = 0; i < 60 && code != 0; ++i) {
    code = run_program({"run", spec.string(), "--out", broken.string(), "--threads", "2"},
                       0.3 + longest * random.uniform())
               .code;
    REQUIRE((code == 0 || code == -9));
    kills += code == -9;
    longest *= 1.05;  // a slow machine must get on too
  }
  CHECK(kills >= 3);
  REQUIRE(code == 0);
  CHECK(weights_of(whole) == weights_of(broken));
  CHECK(metrics_of(whole) == metrics_of(broken));
}

TEST_CASE("a finished run is not run again") {
  Folder folder;
  const auto spec = folder.write("tiny.json", spec_with("0"));
  const auto out = (folder.path() / "runs").string();
  REQUIRE(run_program({"run", spec.string(), "--out", out}).code == 0);
  const auto again = run_program({"run", spec.string(), "--out", out});
  CHECK(again.code == 0);
  CHECK(again.out.find("done before") != std::string::npos);
}
