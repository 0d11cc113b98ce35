// Report pages in a browser, as a reader opens them.
#include <filesystem>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/places.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"

using namespace headlab::test;

namespace {

bool no_browser() {
  Running found({"/bin/sh", "-c", "command -v chromium && command -v chromedriver"});
  const bool there = found.wait().code == 0;
  return skipped(!there, "no chromium and chromedriver (Debian: chromium, chromium-driver)") ||
         skipped(python().empty(),
                 "no Python with selenium: set HEADLAB_PYTHON to one, or let tools/test make .deps/venv");
}

std::string read_in_browser(const std::filesystem::path& page) {
  Running browser({python(), in_source("tests/report/browse.py"), page.string()});
  const auto done = browser.wait();
  INFO(done.err);
  CHECK(done.code == 0);
  return done.out;
}

}  // namespace

TEST_CASE("a run's report opens offline, draws every chart, opens heads, sorts, filters and is used by keyboard",
          "[report][browser]") {
  if (no_browser()) return;
  const Folder folder;
  const auto spec = folder.write(
      "x.json", tiny_spec(R"([
      {"train": {"name": "base", "steps": 6, "batch": {"max_tokens": 200}, "log_every": 2, "validate_every": 2}},
      {"evaluate": {"name": "full", "search": {"beam": 1}}},
      {"score": {"name": "importance", "scorer": "norm"}},
      {"ablate": {"metric": "loss", "evaluate": {"split": "valid", "limit": 10}}},
      {"measure": {"name": "roles", "what": "roles"}},
      {"measure": {"name": "looks", "what": "attention"}},
      {"curve": {"scores": "importance", "metric": "loss", "random_sets": 2, "fractions": [0, 0.25, 0.5, 0.75], "evaluate": {"split": "valid", "limit": 10}}},
      {"prune": {"name": "half", "scores": "importance", "select": {"fraction": 0.5}}},
      {"evaluate": {"name": "pruned", "search": {"beam": 1}}}])",
                          R"(, "expect": [{"claim": "half is gone", "that": "half.heads_after", "equals": 5}])"));
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK(read_in_browser(only_run(folder.path() / "runs", "tiny") / "report.html") == "fine\n");
}

TEST_CASE("the page of an experiment with arms and seeds opens offline and draws every chart", "[report][browser]") {
  if (no_browser()) return;
  const Folder folder;
  const auto spec = folder.write(
      "x.json",
      tiny_spec(R"([
      {"train": {"name": "base", "steps": 4, "batch": {"max_tokens": 200}, "log_every": 2, "validate_every": 2}},
      {"score": {"name": "importance", "scorer": "norm"}},
      {"curve": {"scores": "importance", "metric": "loss", "random_sets": 2, "fractions": [0, 0.5, 0.9], "evaluate": {"split": "valid", "limit": 10}}},
      {"evaluate": {"name": "full", "metrics": ["loss"]}}])",
                R"(, "arms": {"plain": {}, "narrow": {"model.encoder.attention.heads": 2}}, "seeds": [1, 2, 3],
           "compare": [{"claim": "the two are alike", "that": "plain.full.loss", "equals": "narrow.full.loss", "within": 0.5}])"));
  const auto done =
      run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  INFO(done.err);
  CHECK((done.code == 0 || done.code == 3));
  CHECK(read_in_browser(folder.path() / "runs/tiny/report.html") == "fine\n");
}
