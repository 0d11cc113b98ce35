// Runs that share a machine: what a run's identity is made of, and two programs at once.
#include <csignal>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/faults/tiny_files.h"

using namespace headlab;
using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> runs_in(const fs::path& out) {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(out / "tiny", none)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

nlohmann::json environment_of(const fs::path& run) {
  return nlohmann::json::parse(read_file(run / "environment.json"));
}

/// Training that takes long enough to be met at work.
std::string long_spec(const TinyFiles& files, const std::string& steps, const std::string& name = "tiny.json") {
  return files.spec(R"([{"train": {"steps": )" + steps +
                        R"(, "batch": {"max_tokens": 200}, "log_every": 1, "checkpoint_every": 1}}])",
                    "", name);
}

bool has_checkpoint(const fs::path& out) {
  for (const auto& run : runs_in(out)) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints" / "train", none))
      if (entry.path().filename().string().rfind("step-", 0) == 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the number of threads and the precision are part of a run's identity, and are written down", "[faults]") {
  const TinyFiles files;
  const auto spec = files.spec("[" + train_stage(1) + "]");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", spec, "--out", files.out(), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto before = runs_in(files.out());
    const auto finished = run_program(arguments);
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    std::vector<fs::path> made;
    const auto after = runs_in(files.out());
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(made));
    return made;
  };
  const auto one = run({"--threads", "1"}), two = run({"--threads", "2"});
  REQUIRE(one.size() == 1);
  REQUIRE(two.size() == 1);
  CHECK(environment_of(one[0])["threads"] == 1);
  CHECK(environment_of(two[0])["threads"] == 2);
  CHECK(run({"--threads", "1"}).empty());  // the same again: the same folder
  const auto wide = run({"--threads", "1", "--set", "precision=float64"}),
             half = run({"--threads", "1", "--set", "precision=bfloat16"});
  REQUIRE(wide.size() == 1);
  REQUIRE(half.size() == 1);
  for (const auto& [folder, precision] :
       {std::pair(one[0], "float32"), std::pair(wide[0], "float64"), std::pair(half[0], "bfloat16")})
    CHECK(nlohmann::json::parse(read_file(folder / "spec.json"))["precision"] == precision);
  for (const auto* key : {"headlab", "libtorch", "device", "threads", "cpu_capability"})
    CHECK(environment_of(one[0]).contains(key));
}

TEST_CASE("a second program is kept out of a run that another is at, which ends as if it had been alone", "[faults]") {
  const TinyFiles files;
  const auto spec = long_spec(files, "30");
  const std::vector<std::string> arguments{"run", spec, "--out", files.out(), "--threads", "1", "--quiet"};
  Running first(headlab_command(arguments));
  REQUIRE(wait_until([&] { return has_checkpoint(files.out()) || first.ended(); }));
  REQUIRE(!first.ended());
  first.send(SIGSTOP);  // so that it can't end before the second looks
  const auto folder = files.run().string(), process = std::to_string(first.process());
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--fresh"}}) {
    auto again = arguments;
    again.insert(again.end(), more.begin(), more.end());
    const auto second = run_program(again);
    CHECK(second.code == 1);
    CHECK(second.out.empty());
    CHECK(second.err == folder + ": process " + process + " is at work in it; wait for it to end, or stop it (kill " +
                            process + "): what it has saved stays\n");
  }
  first.send(SIGCONT);
  const auto finished = first.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  const auto alone = files / "alone";
  REQUIRE(run_program({"run", spec, "--out", alone.string(), "--threads", "1", "--quiet"}).code == 0);
  const auto weights = fs::path("checkpoints") / "train" / "final" / "model.safetensors";
  CHECK(read_file(files.run() / weights) == read_file(only_run(alone, "tiny") / weights));
  CHECK(run_program(arguments).code == 0);  // the lock went with its process
}

TEST_CASE("two programs run two specs of one name side by side, each as if it were alone", "[faults]") {
  const TinyFiles files;
  const auto one = long_spec(files, "15", "one.json"), two = long_spec(files, "16", "two.json");
  const auto start = [&](const std::string& spec, const fs::path& out) {
    return std::make_unique<Running>(
        headlab_command({"run", spec, "--out", out.string(), "--threads", "1", "--quiet"}));
  };
  auto first = start(one, files.out()), second = start(two, files.out());
  CHECK(first->wait().code == 0);
  CHECK(second->wait().code == 0);
  CHECK(runs_in(files.out()).size() == 2);
  CHECK(start(one, files / "alone")->wait().code == 0);
  CHECK(start(two, files / "alone")->wait().code == 0);
  const auto together = runs_in(files.out()), alone = runs_in(files / "alone");
  REQUIRE(alone.size() == 2);
  const auto weights = fs::path("checkpoints") / "train" / "final" / "model.safetensors";
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(together[i].filename() == alone[i].filename());
    CHECK(read_file(together[i] / weights) == read_file(alone[i] / weights));
  }
}
