#include "src/run/summary.h"

#include <cmath>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

RunOutcome outcome(const char* stages) {
  RunOutcome made;
  made.results = Json{{"stages", Json::parse(stages)}};
  return made;
}

RunVariant variant(const std::string& group) { return {group + ", seed", nullptr, "", group}; }

const SummaryRow& row_of(const std::vector<SummaryRow>& rows, const std::string& group, const std::string& stage, const std::string& measure,
                         std::optional<double> at = std::nullopt) {
  for (const auto& row : rows)
    if (row.group == group && row.stage == stage && row.measure == measure && row.at == at) return row;
  throw std::logic_error("no row " + group + " " + stage + " " + measure);
}

}  // namespace

TEST_CASE("runs that differ in their seed alone are one row, with the mean and Student's interval", "[run]") {
  const std::vector<RunVariant> variants{variant("a"), variant("a"), variant("a"), variant("b")};
  const std::vector<RunOutcome> runs{outcome(R"({"full": {"type": "evaluate", "metrics": {"bleu": 1}, "seconds": 9}})"),
                                     outcome(R"({"full": {"type": "evaluate", "metrics": {"bleu": 2}, "seconds": 9}})"),
                                     outcome(R"({"full": {"type": "evaluate", "metrics": {"bleu": 3}, "seconds": 9}})"),
                                     outcome(R"({"full": {"type": "evaluate", "metrics": {"bleu": 5}, "seconds": 9}})")};
  const auto rows = summarised(variants, runs);
  REQUIRE(rows.size() == 4);
  const auto& a = row_of(rows, "a", "full", "bleu");
  CHECK(a.values == std::vector<double>{1, 2, 3});
  CHECK(a.interval.mean == 2);
  CHECK(a.interval.low == Catch::Detail::Approx(2 - 4.30265272975 / std::sqrt(3)));
  CHECK(a.interval.high == Catch::Detail::Approx(2 + 4.30265272975 / std::sqrt(3)));
  const auto& b = row_of(rows, "b", "full", "bleu");
  CHECK((b.interval.low == 5 && b.interval.high == 5));
  CHECK(summary_text(rows, runs, 80) ==
        "     full bleu\n"
        "  a  2.0 (-0.5 to 4.5)\n"
        "  b  5.0\n");
}

TEST_CASE("points of curves have rows of their own, and repetitions count by their mean", "[run]") {
  const std::vector<RunVariant> variants{variant("x")};
  const std::vector<RunOutcome> runs{outcome(R"({
    "curve": {"type": "curve", "metric": "accuracy", "points": [{"fraction": 0, "heads_kept": 4, "value": 0.9},
      {"fraction": 0.5, "heads_kept": 2, "value": 0.75, "random": {"mean": 0.5, "low": 0.4, "high": 0.6, "values": [0.4, 0.6]}}]},
    "random": {"type": "repeat", "runs": [{"pruned": {"metrics": {"bleu": 70}}}, {"pruned": {"metrics": {"bleu": 72}}}]}})")};
  const auto rows = summarised(variants, runs);
  CHECK(row_of(rows, "x", "curve", "value", 0.5).interval.mean == 0.75);
  CHECK(row_of(rows, "x", "curve", "random", 0.5).interval.mean == 0.5);
  CHECK(row_of(rows, "x", "curve", "heads_kept", 0.0).interval.mean == 4);
  CHECK(row_of(rows, "x", "random/pruned", "bleu").values == std::vector<double>{71});
  const auto csv = to_csv(rows);
  CHECK(csv.find("group,stage,measure,at,mean,low,high,seeds\n") == 0);
  CHECK(csv.find("\nx,curve,value,0.5,0.75,0.75,0.75,1\n") != std::string::npos);
  CHECK(csv.find("\nx,random/pruned,bleu,,71.0,71.0,71.0,1\n") != std::string::npos);
  const auto text = summary_text(rows, runs, 80);
  CHECK_THAT(text, ContainsSubstring("random/pruned bleu") && ContainsSubstring("71.0"));
  CHECK_THAT(text, ContainsSubstring("  curve  masked  heads kept  accuracy  at random\n"
                                     "  x         0 %           4     0.900\n"
                                     "  x        50 %           2     0.750      0.500\n"));
}

TEST_CASE("a sweep leaves its summary as a table of comma-separated values, groups in quotes where they need them", "[run]") {
  const test::Folder folder;
  const auto spec = folder.write("x.json", test::tiny_spec(R"([{"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"metrics": ["loss"]}}])",
                                                           R"x(, "sweep": {"model.embedding.scale": [true, false], "model.dropout": [0.0], "seed": [1, 2]})x"));
  const auto run = test::run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("evaluate loss") && ContainsSubstring("scale=true, dropout=0.0") && ContainsSubstring("summary.csv"));
  const auto csv = read_file(folder.path() / "runs" / "tiny" / "summary.csv");
  CHECK_THAT(csv, ContainsSubstring("\"scale=true, dropout=0.0\",evaluate,loss,,"));
  const auto json = nlohmann::json::parse(read_file(folder.path() / "runs" / "tiny" / "experiment.json"));
  CHECK(json["runs"].size() == 4);
  CHECK_FALSE(json.contains("compare"));
  CHECK(json["summary"][0]["values"].size() == 2);
}

}  // namespace headlab
