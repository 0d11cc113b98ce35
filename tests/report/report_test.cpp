#include "src/report/report.h"

#include "src/report/chart.h"

#include <nlohmann/json.hpp>
#include <set>

#include "src/report/head_map.h"
#include "tests/catch.h"
#include "tests/report/page_checks.h"

using namespace headlab;
using namespace headlab::test;
using json = nlohmann::ordered_json;

namespace {

/// A small run with one stage of each type.
json small_results() {
  return json::parse(R"json({
    "name": "toy", "question": "does it hurt?", "id": "abc", "command": "headlab run toy.json", "seed": 7,
      "seconds": 171.2,
    "data": {"train": 12000, "skipped": {"empty": 0}},
    "expect": [
      {"claim": "keeps BLEU", "that": "pruned.bleu", "relation": "at_least", "bound": "full.bleu - 3",
       "left": 77.61, "right": 75.4, "holds": true},
      {"claim": "is best", "that": "pruned.bleu", "relation": "above", "bound": "full.bleu",
       "left": 78.41, "right": 78.42, "holds": false}],
    "stages": {
      "train": {"type": "train", "steps": 1600, "tokens": 2345678, "seconds": 100.0, "wall_seconds": 101.0},
      "full": {"type": "evaluate", "split": "test", "metrics": {"bleu": 78.42, "loss": 0.4021},
               "signature": {"bleu": "nrefs:1|tok:13a"}, "heads": 4, "parameters": 1123456,
               "samples": [{"source": "a dog", "reference": "ein hund", "hypothesis": "ein hund"}]},
      "importance": {"type": "score", "method": "gradient",
                     "heads": {"dec.cross.0.1": 0.0, "enc.self.0.0": 0.25, "enc.self.0.1": 0.5, "dec.cross.0.0": 1.0}},
      "ablate": {"type": "ablate", "metric": "bleu", "baseline": 78.42,
                 "heads": {"enc.self.0.0": {"bleu": 78.5, "delta": 0.08}, "enc.self.0.1": {"bleu": 47.2,
                   "delta": -31.22},
                           "dec.cross.0.0": {"bleu": 70.0, "delta": -8.42}, "dec.cross.0.1": {"bleu": 78.42,
                             "delta": 0}},
                 "sets": [{"name": "both", "heads": ["enc.self.0.0", "enc.self.0.1"], "bleu": 10.0, "delta": -68.42}]},
      "curve": {"type": "curve", "metric": "bleu", "scores": "importance", "points": [
        {"heads_kept": 4, "value": 78.42, "random": {"mean": 78.42, "low": 78.42, "high": 78.42}},
        {"heads_kept": 2, "value": 77.0, "random": {"mean": 41.5, "low": 30.25, "high": 50.5, "values": [30.25,
          50.5]}}]},
      "prune": {"type": "prune", "removed": ["dec.cross.0.1", "enc.self.0.0"],
                "kept": {"enc.self": [[1]], "dec.cross": [[0]]}, "heads_before": 4, "heads_after": 2,
                "parameters_before": 1123456, "parameters_after": 932480},
      "pruned": {"type": "evaluate", "split": "test", "metrics": {"bleu": 77.61, "loss": 0.43},
                 "samples": [{"source": "a dog", "reference": "ein hund", "hypothesis": "ein tier"}]},
      "after": {"type": "score", "method": "gradient", "heads": {"enc.self.0.1": 0.5, "dec.cross.0.0": 1.0}},
      "random": {"type": "repeat", "runs": [
        {"evaluate": {"type": "evaluate", "split": "test", "metrics": {"bleu": 38.0}}},
        {"evaluate": {"type": "evaluate", "split": "test", "metrics": {"bleu": 44.0}}}]},
      "export": {"type": "export", "file": "exports/pruned.pt", "equal": true}
    }})json");
}

std::vector<nlohmann::json> small_metrics() {
  std::vector<nlohmann::json> rows;
  for (int step = 50; step <= 400; step += 50) {
    nlohmann::json row = {
        {"stage", "train"}, {"step", step}, {"loss", 400.0 / step}, {"lr", step * 1e-6}, {"grad_norm", 1.5}};
    if (step % 100 == 0) row["valid"] = {{"loss", 410.0 / step}, {"bleu", step / 10.0}};
    if (step == 200) row["loss"] = nullptr;  // not finite: JSON has no NaN
    rows.push_back(row);
    for (auto* stage : {"random-1/train", "random-2/train"}) {
      rows.push_back({{"stage", stage}, {"step", step}, {"loss", 2.0}});
    }
  }
  return rows;
}

const json environment = {{"device", "cpu"}, {"threads", 2}, {"libtorch", "2.13.0"}};

std::string small_page() { return report_html(small_results(), small_metrics(), {{"name", "toy"}}, environment); }

}  // namespace

TEST_CASE("a report begins with the question and each claim's verdict and figures", "[report]") {
  auto page = small_page();
  auto question = page.find("<h1>does it hurt?</h1>"), answer = page.find("1 of 2 claims hold."),
       results = page.find("id=\"results\"");
  REQUIRE(question != std::string::npos);
  REQUIRE(answer != std::string::npos);
  REQUIRE(results != std::string::npos);
  CHECK(question < answer);
  CHECK(answer < results);
  CHECK_THAT(page, ContainsSubstring("✓ holds</b><span>keeps BLEU</span><span class=\"numbers\">77.6 ≥ 75.4</span>"
                                     "<code>pruned.bleu ≥ full.bleu - 3</code>"));
  // Figures that would look equal get the digits that decide.
  CHECK_THAT(page,
             ContainsSubstring("✗ does not hold</b><span>is best</span><span class=\"numbers\">78.41 &gt; 78.42<"));
}

TEST_CASE("a report is well-formed and asks for nothing from outside", "[report]") {
  auto page = small_page();
  CHECK(first_unbalanced(page) == "");
  CHECK_THAT(page, ContainsSubstring("Content-Security-Policy\" content=\"default-src 'none'"));
  for (auto* outside : {"http:", "https:", "src=", "url(", "@import", "<link", "<iframe", "<img"}) {
    CAPTURE(outside);
    CHECK(count(without_scripts(page), outside) == 0);
  }
}

TEST_CASE("every link within a report leads somewhere, and ids are unique", "[report]") {
  auto page = small_page();
  auto ids = all_matches(page, " id=\"([^\"]*)\"");
  std::set<std::string> known(ids.begin(), ids.end());
  CHECK(known.size() == ids.size());
  auto links = all_matches(page, "href=\"#([^\"]*)\"");
  CHECK(links.size() > 20);
  for (auto& link : links) {
    CAPTURE(link);
    CHECK(known.count(link) == 1);
  }
}

TEST_CASE("text from models and data can't become markup", "[report]") {
  std::string bad = "<script>alert(1)</script>\"' onclick=x <b>&amp;\xff\x01";
  auto results = small_results(), spec = json{{"name", bad}}, poisoned_environment = json{{bad, bad}};
  auto types = results;  // the types choose what is shown
  poison(results, bad);
  for (auto& [name, stage] : types["stages"].items()) results["stages"][name]["type"] = stage["type"];
  results["stages"]["random"]["runs"] = {{{bad, {{"type", "evaluate"}, {"metrics", {{bad, 1.0}}}}}}};
  results["stages"][bad] = {{"type", "evaluate"}, {"metrics", {{bad, 1.0}}}, {"signature", {{bad, bad}}}};
  results["stages"][bad + "2"] = {{"type", "score"}, {"method", bad}, {"heads", {{bad, 1.0}, {bad + ".0.1", 2.0}}}};
  results["stages"][bad + "3"] = {{"type", bad}, {bad, bad}};
  auto metrics = small_metrics();
  for (auto& row : metrics) row["stage"] = bad, row["valid"] = {{bad, 1.0}};
  auto page = report_html(results, metrics, spec, poisoned_environment);
  CHECK(count(page, "<script>") ==
        (charts_in(page).empty() ? 1 : 2));  // ours and D3's; what they hold is no text of the run's
  CHECK(count(page, "<script>alert") == 0);
  CHECK(count(without_scripts(page), "alert(1)") > 20);
  CHECK(count(page, "<b>&amp;amp;") == 0);
  CHECK(count(page, "onclick=x <b") == 0);
  CHECK(page.find('\xff') == std::string::npos);
  CHECK(page.find('\x01') == std::string::npos);
  CHECK(first_unbalanced(page) == "");
}

TEST_CASE("results that lack parts, or hold what nobody expects, still make a page", "[report]") {
  for (auto* text :
       {"{}", "[]", "null", R"({"stages": []})", R"({"stages": {"a": 1, "b": {"type": 5}, "c": {}}})",
        R"({"expect": {}, "stages": {"a": {"type": "ablate", "heads": [1], "sets": [1, {}]}}})",
        R"({"stages": {"a": {"type": "evaluate", "metrics": "x", "samples": [1, {}], "signature": [2]}}})",
        R"({"stages": {"a": {"type": "curve", "points": [{}, {"heads_kept": null, "value": 1}]}}})",
        R"({"stages": {"a": {"type": "repeat", "runs": [1, {"b": 2}]}, "s": {"type": "score", "heads": {}}}})",
        R"({"stages": {"p": {"type": "prune", "removed": "x", "kept": {"enc.self": [1, [[]]]}}}})"}) {
    CAPTURE(text);
    auto page =
        report_html(json::parse(text), {nlohmann::json(5), {{"stage", 1}}, {{"stage", "a"}, {"step", "b"}}}, {}, {});
    CHECK(first_unbalanced(page) == "");
    CHECK_THAT(page, ContainsSubstring("<main>"));
  }
  CHECK(count(report_html(json::object(), {}, {}, {}), "<section") == 0);
}

TEST_CASE("repetitions are one line with their mean and range", "[report]") {
  CHECK_THAT(small_page(), ContainsSubstring("random/evaluate <span class=\"range\">mean of 2</span>") &&
                               ContainsSubstring("41.0 <span class=\"range\">(38.0 to 44.0)</span>"));
}

TEST_CASE("head maps show values, what pruning took, and what was gone before", "[report]") {
  auto page = small_page();
  CHECK_THAT(page, ContainsSubstring(
                       "title=\"enc.self.0.1: -31.22 (change of BLEU)\"><a href=\"#head-enc.self.0.1\">-31.2</a>"));
  CHECK_THAT(page, ContainsSubstring("title=\"enc.self.0.0: +0.08 (change of BLEU); removed by prune\">"));
  CHECK_THAT(page, ContainsSubstring("title=\"enc.self.0.0: removed before by prune\">"));
  CHECK_THAT(page, ContainsSubstring("Heads kept by prune: 2 of 4"));
  CHECK_THAT(page, ContainsSubstring("orange is worse, blue better"));
  // Encoder before decoder, by layer and head, whatever the order in the file.
  auto rows = all_matches(page, "<tr id=\"head-([^\"]*)\"");
  CHECK(rows == std::vector<std::string>{"enc.self.0.0", "enc.self.0.1", "dec.cross.0.0", "dec.cross.0.1"});
}

TEST_CASE("curves leave out what is not finite and gather repetitions", "[report]") {
  auto page = small_page();
  // The loss line begins anew after the step that has none.
  bool broken = false;
  for (auto& chart : charts_in(page))
    for (auto& line : chart["lines"])
      for (auto& point : line["points"]) broken = broken || point[1].is_null();
  CHECK(broken);
  CHECK_THAT(page, ContainsSubstring("random/train, 2 repetitions") && ContainsSubstring("validation BLEU"));
  CHECK(bands_of(page, Chart::neutral) == 1);
}

TEST_CASE("samples stand side by side, cost shows the change", "[report]") {
  auto page = small_page();
  CHECK(count(page, "<dd dir=\"auto\">a dog</dd>") == 1);
  CHECK_THAT(page, ContainsSubstring("<dt>full</dt><dd dir=\"auto\">ein hund <span class=\"same\">= reference</span>"));
  CHECK_THAT(page, ContainsSubstring("<dt>pruned</dt><dd dir=\"auto\">ein tier</dd>"));
  CHECK_THAT(page, ContainsSubstring("1,123,456 → 932,480 <span class=\"range\">(-17 %)</span>"));
  CHECK_THAT(page, ContainsSubstring("23.5k"));  // tokens a second
  CHECK_THAT(page, ContainsSubstring("<code>headlab run toy.json</code>") && ContainsSubstring("exports/pruned.pt"));
}

TEST_CASE("names of heads are read only where they are names of heads", "[report]") {
  CHECK(place_of("enc.self.0.13") == HeadPlace{"enc.self", 0, 13});
  for (auto* name :
       {"", ".", "..", "enc", "0.1", ".0.1", "enc.self.x.1", "enc.self.1.", "enc.self.-1.0", "enc.self.0.9999999"}) {
    CAPTURE(name);
    CHECK_FALSE(place_of(name));
  }
}
