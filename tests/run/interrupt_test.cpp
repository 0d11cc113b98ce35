#include <signal.h>

#include <filesystem>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

namespace fs = std::filesystem;

/// Runs the program and sends it `signal` as soon as its training has reported; its exit code and what it said.
Finished interrupted_run(const std::vector<std::string>& arguments, const fs::path& out, int signal) {
  Running run(headlab_command(arguments));
  const auto reported = [&] {
    std::error_code none;
    if (!fs::exists(out / "tiny", none)) return false;
    for (const auto& entry : fs::directory_iterator(out / "tiny", none))
      if (fs::exists(entry.path() / "metrics.jsonl", none) && fs::file_size(entry.path() / "metrics.jsonl", none) > 0)
        return true;
    return false;
  };
  wait_until([&] { return reported() || run.ended(); });
  run.send(signal);
  return run.wait();
}

std::string final_weights(const fs::path& out) {
  return read_file(only_run(out, "tiny") / "checkpoints" / "train" / "final" / "model.safetensors");
}

}  // namespace

TEST_CASE("Ctrl-C in a training saves, says how to go on, and the same command ends with the same bits", "[run]") {
  Folder folder;
  // No checkpoint but what the signal asks for; enough steps that the signal finds them unfinished.
  const auto spec = folder.write("tiny.json", tiny_spec(R"([
    {"train": {"steps": 300, "batch": {"max_tokens": 200}, "log_every": 5, "schedule": {"type": "constant", "peak": 0.003}}},
    {"evaluate": {"metrics": ["loss"]}}
  ])"));
  const auto whole = folder.path() / "whole";
  REQUIRE(run_program({"run", spec.string(), "--out", whole.string(), "--threads", "1"}).code == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto broken = folder.path() / ("broken" + std::to_string(signal));
    const std::vector<std::string> arguments{"run", spec.string(), "--out", broken.string(), "--threads", "1"};
    const auto stopped = interrupted_run(arguments, broken, signal);
    INFO(stopped.err);
    REQUIRE(stopped.code == 1);
    CHECK(stopped.err.find("stopped at step ") != std::string::npos);
    CHECK(stopped.err.find(": saved. Go on with: tools/headlab run " + spec.string() + " (resumes by itself)") !=
          std::string::npos);
    const auto run = only_run(broken, "tiny");
    CHECK_FALSE(fs::exists(run / "report.html"));
    CHECK_FALSE(fs::exists(run / "checkpoints" / "train" / "final"));
    const auto again = run_program(arguments);
    CHECK(again.code == 0);
    CHECK(again.out.find("goes on from step ") != std::string::npos);
    CHECK(final_weights(broken) == final_weights(whole));
  }
}
