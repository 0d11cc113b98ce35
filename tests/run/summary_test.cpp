#include "src/run/summary.h"

#include <algorithm>
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

const SummaryRow& row_of(const std::vector<SummaryRow>& rows, const std::string& group, const std::string& stage,
                         const std::string& measure, std::optional<double> at = std::nullopt) {
  for (const auto& row : rows)
    if (row.group == group && row.stage == stage && row.measure == measure && row.at == at) return row;
  throw std::logic_error("no row " + group + " " + stage + " " + measure);
}

}  // namespace

TEST_CASE("runs that differ in their seed alone are one row, with the mean and Student's interval", "[run]") {
  const std::vector<RunVariant> variants{variant("a"), variant("a"), variant("a"), variant("b")};
  const std::vector<RunOutcome> runs{
      outcome(R"({"full": {"type": "evaluate", "metrics": {"bleu": 1}, "seconds": 9}})"),
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
        "  mean ± half of its 95 % interval (Student's t over the seeds)\n"
        "     full bleu\n"
        "  a  2.0 ± 2.5\n"
        "  b        5.0\n");
}

TEST_CASE("points of curves have rows of their own, and repetitions count by their mean", "[run]") {
  const std::vector<RunVariant> variants{variant("x")};
  const std::vector<RunOutcome> runs{outcome(R"({
    "norms": {"type": "score", "method": "norm"},
    "curve": {"type": "curve", "metric": "accuracy", "scores": "norms", "points": [{"fraction": 0, "heads_kept": 4, "value": 0.9},
      {"fraction": 0.5, "heads_kept": 2, "value": 0.75, "random": {"mean": 0.5, "low": 0.4, "high": 0.6, "values": [0.4, 0.6]}}]},
    "random": {"type": "repeat", "runs": [{"pruned": {"metrics": {"bleu": 70}}}, {"pruned": {"metrics": {"bleu": 72}}}]}})")};
  const auto rows = summarised(variants, runs);
  CHECK(row_of(rows, "x", "curve", "value", 0.5).interval.mean == 0.75);
  CHECK(row_of(rows, "x", "curve", "random", 0.5).interval.mean == 0.5);
  CHECK(row_of(rows, "x", "curve", "heads_kept", 0.0).interval.mean == 4);
  CHECK(row_of(rows, "x", "random/pruned", "bleu").values == std::vector<double>{71});
  const auto csv = to_csv(rows);
  CHECK(csv.find("group,stage,measure,at,mean,low,high,seeds,metric,method\n") == 0);
  CHECK(csv.find("\nx,curve,value,0.5,0.75,0.75,0.75,1,accuracy,norm\n") != std::string::npos);
  CHECK(csv.find("\nx,random/pruned,bleu,,71.0,71.0,71.0,1,,\n") != std::string::npos);
  const auto text = summary_text(rows, runs, 80);
  CHECK_THAT(text, ContainsSubstring("random/pruned bleu") && ContainsSubstring("71.0"));
  CHECK_THAT(text, ContainsSubstring("     curve         masked  kept  accuracy  at random\n"
                                     "  x  curve (norm)     0 %     4     0.900\n"
                                     "  x  curve (norm)    50 %     2     0.750      0.500\n"));
}

TEST_CASE("curves of several methods, fractions and seeds are one table, with mean and interval", "[run]") {
  const auto of_seed = [](double gradient, double worst) {
    return R"({"g": {"type": "score", "method": "gradient"},
      "by_gradient": {"type": "curve", "metric": "accuracy", "scores": "g", "points": [{"fraction": 0.25, "heads_kept": 6, "value": 0.9},
        {"fraction": 0.5, "heads_kept": 4, "value": )" +
           std::to_string(gradient) + R"(, "random": {"mean": 0.5}}]},
      "worst": {"type": "curve", "metric": "accuracy", "scores": "g", "highest": true, "stacks": ["dec.self"], "scope": "layer",
        "points": [{"fraction": 0.5, "heads_kept": 4, "value": )" +
           std::to_string(worst) + "}]}}";
  };
  const std::vector<RunVariant> variants{variant(""), variant(""), variant("")};
  const std::vector<RunOutcome> runs{outcome(of_seed(0.7, 0.1).c_str()), outcome(of_seed(0.8, 0.1).c_str()),
                                     outcome(of_seed(0.9, 0.1).c_str())};
  const auto rows = summarised(variants, runs);
  const auto& row = row_of(rows, "", "by_gradient", "value", 0.5);
  CHECK(row.values == std::vector<double>{0.7, 0.8, 0.9});
  CHECK((row.metric == "accuracy" && row.method == "gradient"));
  CHECK(row_of(rows, "", "worst", "value", 0.5).method == "gradient, highest first, by layer, dec.self");
  // 0.8 +- 4.30265 * 0.1 / sqrt(3)
  CHECK(summary_text(rows, runs, 100) ==
        "  mean ± half of its 95 % interval (Student's t over the seeds)\n"
        "  curve                                                masked  kept       accuracy      at random\n"
        "  by_gradient (gradient)                                 25 %     6  0.900 ± 0.000\n"
        "  by_gradient (gradient)                                 50 %     4  0.800 ± 0.248  0.500 ± 0.000\n"
        "  worst (gradient, highest first, by layer, dec.self)    50 %     4  0.100 ± 0.000\n");
  const auto json = to_json(rows);
  const auto found = std::find_if(json.begin(), json.end(), [](const auto& one) {
    return one["stage"] == "by_gradient" && one["measure"] == "value" && one["at"] == 0.5;
  });
  REQUIRE(found != json.end());
  CHECK((*found)["method"] == "gradient");
  CHECK((*found)["values"].size() == 3);
}

TEST_CASE("what a run could not measure is not a number in the summary, rather than left out", "[run]") {
  const std::vector<RunVariant> variants{variant("a"), variant("a")};
  const std::vector<RunOutcome> runs{
      outcome(R"({"full": {"type": "evaluate", "metrics": {"loss": 1}}})"),
      outcome(R"({"full": {"type": "evaluate", "metrics": {"loss": null}}, "curve": {"type": "curve", "metric": "loss",
                                       "points": [{"fraction": 0, "heads_kept": 4, "value": null}, {"value": 1}]}})")};
  const auto rows = summarised(variants, runs);
  const auto& row = row_of(rows, "a", "full", "loss");
  CHECK(row.values.size() == 2);
  CHECK(std::isnan(row.interval.mean));
  CHECK_THAT(to_csv(rows), ContainsSubstring("a,full,loss,,nan,nan,nan,2,,\n") &&
                               ContainsSubstring("a,curve,value,0.0,nan,nan,nan,1,loss,\n"));
  CHECK(to_json(rows)[0]["mean"].is_number());  // not a number; null in the file
  CHECK(to_json(rows)[0].dump().find("\"mean\":null") != std::string::npos);
  CHECK_THAT(summary_text(rows, runs, 80), ContainsSubstring("nan"));
}

TEST_CASE("each row of a large summary is found", "[run]") {
  std::vector<RunVariant> variants;
  std::vector<RunOutcome> runs;
  for (int group = 0; group < 1500; ++group) {
    variants.push_back(variant("g" + std::to_string(group)));
    runs.push_back(
        outcome((R"({"full": {"metrics": {"bleu": )" + std::to_string(group) + "}, \"steps\": 3}}").c_str()));
  }
  const auto rows = summarised(variants, runs);
  REQUIRE(rows.size() == 3000);
  const auto text = summary_text(rows, runs, 80);
  CHECK_THAT(text, ContainsSubstring("  g0           0.0\n") && ContainsSubstring("  g1499     1499.0\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1501);
}

TEST_CASE("a sweep leaves its summary as a table of comma-separated values, groups in quotes where they need them",
          "[run]") {
  const test::Folder folder;
  const auto spec = folder.write(
      "x.json",
      test::tiny_spec(
          R"([{"train": {"steps": 3, "batch": {"max_tokens": 200}, "log_every": 1}}, {"evaluate": {"metrics": ["loss"]}}])",
          R"x(, "sweep": {"model.embedding.scale": [true, false], "model.dropout": [0.0], "seed": [1, 2]})x"));
  const auto run =
      test::run_program({"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("evaluate loss") && ContainsSubstring("scale=true, dropout=0.0") &&
                          ContainsSubstring("summary.csv") && ContainsSubstring("report.html"));
  const auto csv = read_file(folder.path() / "runs" / "tiny" / "summary.csv");
  CHECK_THAT(csv, ContainsSubstring("\"scale=true, dropout=0.0\",evaluate,loss,,"));
  const auto json = nlohmann::json::parse(read_file(folder.path() / "runs" / "tiny" / "experiment.json"));
  CHECK(json["runs"].size() == 4);
  CHECK_FALSE(json.contains("compare"));
  CHECK(json["summary"][0]["values"].size() == 2);
  CHECK(json["runs"][0]["group"] == "scale=true, dropout=0.0");
  CHECK_THAT(read_file(folder.path() / "runs" / "tiny" / "report.html"), ContainsSubstring("4 runs in 2 groups"));
}

}  // namespace headlab
