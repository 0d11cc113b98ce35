#include <sstream>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab::test;

TEST_CASE(
    "several run folders are compared on one page: seeds are a group, other settings another, and the table is CSV too",
    "[cli][report]") {
  const Folder folder;
  const auto stages =
      R"([{"train": {"steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"name": "full", "metrics": ["loss"]}}])";
  const auto spec = folder.write("x.json", tiny_spec(stages)).string(), runs = (folder.path() / "runs").string();
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", spec, "--out", runs, "--threads", "1", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run_program(arguments);
    INFO(done.err);
    REQUIRE(done.code == 0);
  };
  run({});
  run({"--set", "seed=4"});
  run({"--set", "model.dropout=0.5"});
  const auto page = folder.path() / "both.html";
  const auto done = run_program({"report", runs + "/tiny", runs + "/tiny", "--out", page.string()});
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK(done.out == page.string() + "\n");
  const auto text = headlab::read_file(page);
  CHECK_THAT(text, ContainsSubstring("3 runs beside each other"));
  std::istringstream table(headlab::read_file(folder.path() / "both.csv"));
  std::vector<std::string> losses;
  for (std::string line; std::getline(table, line);)
    if (line.find(",full,loss,") != std::string::npos) losses.push_back(line);
  REQUIRE(losses.size() == 2);
  CHECK((losses[0].find(",2,") != std::string::npos ||
         losses[1].find(",2,") != std::string::npos));  // two seeds in one of them
  const auto wrong = run_program({"report", runs + "/tiny", (folder.path() / "nothing").string()});
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.err, ContainsSubstring("no run folder, nor one of runs"));
}
