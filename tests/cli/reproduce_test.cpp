// headlab reproduce, as a user calls it.
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

using namespace headlab;
using namespace headlab::test;

namespace {

std::string spec_of(const std::string& name, const std::string& paper, const std::string& model = "") {
  auto text = tiny_spec(
      R"([{"train": {"steps": 2, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"metrics": ["loss"]}}])",
      R"(, "paper": ")" + paper + R"(", "seeds": [1, 2],
  "compare": [{"claim": "the loss is finite", "control": "none", "that": "evaluate.loss", "below": 1000}])");
  text.replace(text.find("\"tiny\""), 6, "\"" + name + "\"");
  if (!model.empty()) text.replace(text.find("\"d_model\": 16"), 13, "\"d_model\": 16, " + model);
  return text;
}

/// A folder of specs as experiments/papers is.
struct Papers {
  Folder folder;
  std::string specs = (folder.path() / "papers").string(), out = (folder.path() / "runs").string();
  Papers() {
    std::filesystem::create_directory(specs);
    folder.write("papers/22-gates.json", spec_of("gates", "1905.09418"));
    folder.write("papers/54-sixteen.json", spec_of("sixteen", "1905.10650"));
  }
  Finished reproduce(std::vector<std::string> more) const {
    more.insert(more.begin(), {"reproduce", "--specs", specs, "--out", out, "--threads", "1"});
    return run_program(more);
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("reproduce says the time first, keeps the ledger, and runs nothing again", "[cli]") {
  const Papers papers;
  const auto first = papers.reproduce({"22"});
  INFO(first.err << first.out);
  REQUIRE(first.code == 0);
  const std::string unknown = "reproduce: 1 spec\n  time       2 runs to do: unknown until the first run has ended\n";
  CHECK(first.out.substr(0, unknown.size()) == unknown);
  CHECK_THAT(first.out, ContainsSubstring("1 of 2 runs done, about ") && ContainsSubstring("2 of 2 runs done\n"));
  CHECK_THAT(first.out,
             ContainsSubstring("22  1905.09418  22-gates  the loss is finite (control: none)  evaluate.loss < 1000") &&
                 ContainsSubstring("1 claim: 1 holds, 0 do not hold, 0 have not enough evidence"));
  const auto again = papers.reproduce({"1905.09418"});
  CHECK(again.code == 0);
  CHECK_THAT(again.out, ContainsSubstring("all 2 runs done before (") && !ContainsSubstring("s, loss"));
  // The other one is known by number as well; its time is unknown, that of the first is not spent again.
  const auto all = papers.reproduce({});
  CHECK(all.code == 0);
  CHECK_THAT(all.out, ContainsSubstring("reproduce: 2 specs\n  time       2 of 4 runs done before (") &&
                          ContainsSubstring("2 to do: unknown until the first run has ended"));
  const auto ledger = nlohmann::json::parse(read_file(std::filesystem::path(papers.out) / "ledger.json"))["specs"];
  REQUIRE(ledger.size() == 2);
  CHECK((ledger[0]["number"] == 22 && ledger[1]["number"] == 54));
  CHECK(ledger[0]["claims"][0]["answer"] == "holds");
  CHECK(ledger[0]["claims"][0]["runs"] == 2);
  CHECK(ledger[0]["seconds"] > 0);
  CHECK(count(read_file(std::filesystem::path(papers.out) / "ledger.csv"), "\n") == 3);
  // Each experiment has its page.
  CHECK_THAT(read_file(std::filesystem::path(papers.out) / "gates" / "report.html"),
             ContainsSubstring("does it run?") && ContainsSubstring("✓ holds"));
}

TEST_CASE("reproduce without runs says how long it would take, and unknown papers are told with those that are there",
          "[cli]") {
  const Papers papers;
  const auto dry = papers.reproduce({"--dry", "54", "22", "54"});
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, ContainsSubstring(
                          "reproduce: 2 specs\n  time       4 runs to do: unknown until the first run has ended\n") &&
                          ContainsSubstring("54-sixteen.json: 2 runs to do"));
  CHECK(dry.out.find("54-sixteen") < dry.out.find("22-gates"));
  CHECK_FALSE(std::filesystem::exists(papers.out));
  const auto unknown = papers.reproduce({"23"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err == "reproduce: no spec of paper \"23\" in " + papers.specs + " (papers there: 22, 54)\n");
  const auto no_paper = papers.reproduce({"2101.00001"});
  CHECK(no_paper.code == 2);
  CHECK(no_paper.err ==
        "reproduce: no spec of paper \"2101.00001\" in " + papers.specs + " (papers there: 1905.09418, 1905.10650)\n");
}

TEST_CASE("a spec that fails is told, the others are run, and the exit code says it", "[cli]") {
  const Papers papers;
  papers.folder.write("papers/07-fails.json", spec_of("fails", "2210.05144", R"("embedding": {"max_length": 3})"));
  const auto run = papers.reproduce({"--quiet"});
  INFO(run.err << run.out);
  CHECK(run.code == 1);
  CHECK_THAT(run.err, ContainsSubstring("07-fails.json: model.embedding.max_length: expected at least "));
  CHECK_THAT(run.out, ContainsSubstring("failed") && ContainsSubstring("22-gates") && ContainsSubstring("54-sixteen"));
  CHECK(count(run.out, "reproduce:") == 0);
  const auto ledger = nlohmann::json::parse(read_file(std::filesystem::path(papers.out) / "ledger.json"))["specs"];
  REQUIRE(ledger.size() == 3);
  CHECK(ledger[0].contains("failed"));
}

TEST_CASE("the page of an experiment can be written again", "[cli]") {
  const Papers papers;
  REQUIRE(papers.reproduce({"54", "--quiet"}).code == 0);
  const auto folder = std::filesystem::path(papers.out) / "sixteen";
  const auto page = read_file(folder / "report.html");
  std::filesystem::remove(folder / "report.html");
  const auto run = run_program({"report", folder.string()});
  CHECK(run.code == 0);
  CHECK(run.out == (folder / "report.html").string() + "\n");
  CHECK(read_file(folder / "report.html") == page);
  CHECK_THAT(page, ContainsSubstring("train: training loss") && ContainsSubstring("seed=2"));
}
