// The commands of docs/tour.md, typed one after another, with trainings cut short.
#include <filesystem>
#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"

using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

/// The lines of a Markdown text that are set as code.
std::vector<std::string> commands_of(const std::string& file) {
  std::istringstream lines(headlab::read_file(in_source(file)));
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("    ", 0) == 0) commands.push_back(line.substr(4));
  return commands;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("every command of the tour does what the tour says", "[cli][docs]") {
  if (skipped(python().empty(), "no Python with pandas: set HEADLAB_PYTHON to one, or let tools/test make .deps/venv"))
    return;
  const Folder folder;
  const auto here = folder.path();
  fs::create_directories(here / "experiments");
  fs::copy_file(in_source("experiments/tour.json"), here / "experiments/tour.json");
  // What `new` reads and changes.
  fs::create_directories(here / "modules/attention/gate");
  fs::copy_file(in_source("modules/attention/gate/registry.cpp"), here / "modules/attention/gate/registry.cpp");
  fs::create_directories(here / "tests/modules");
  fs::copy_file(in_source("tests/modules/conformance_test.cpp"), here / "tests/modules/conformance_test.cpp");
  fs::create_directories(here / "tools");
  fs::copy(in_source("tools/templates"), here / "tools/templates", fs::copy_options::recursive);

  const auto commands = commands_of("docs/tour.md");
  CHECK(commands.size() >= 15);
  int tried = 0;
  for (const auto& typed : commands) {
    // What builds the program anew is tried by hand: it takes minutes.
    if (typed.rfind("tools/test", 0) == 0 || typed.find("experiments/openness.json") != std::string::npos) continue;
    auto command = with(typed, "tools/headlab", "'" + program_file() + "'");
    command = with(command, "python -c", "'" + python() + "' -c");
    const bool trains = typed.find("tools/headlab run ") != std::string::npos;
    if (trains)
      command +=
          " --threads 1 --set stages[0].train.steps=150 --set stages[7].train.steps=50 --set "
          "stages[1].evaluate.limit=20 --set stages[8].evaluate.limit=20";
    Running shell({"/bin/bash", "-c", "cd '" + here.string() + "' && set -o pipefail && " + command});
    const auto done = shell.wait();
    INFO(command << "\n" << done.out << done.err);
    CHECK((done.code == 0 || (trains && done.code == 3)));  // so short a training may not hold what the spec claims
    if (typed.find("translate") != std::string::npos) CHECK(done.out.size() > 1);
    if (typed.find(" score ") != std::string::npos) CHECK(done.out.front() == '-');
    if (typed.find("pandas") != std::string::npos) CHECK_THAT(done.out, ContainsSubstring("tokens_per_s"));
    ++tried;
  }
  CHECK(tried >= 14);
  CHECK(fs::exists(here / "both.html"));
  CHECK(fs::exists(here / "both.csv"));
  CHECK(fs::exists(here / "modules/attention/gate/openness.cpp"));
}
