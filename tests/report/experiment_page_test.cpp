#include "src/report/experiment_page.h"

#include "src/report/claims.h"
#include "tests/catch.h"
#include "tests/report/page_checks.h"

using namespace headlab;
using namespace headlab::test;
using json = nlohmann::ordered_json;

namespace {

json claim(const char* text, bool holds, bool undecided) {
  return {{"claim", text},
          {"that", "more.pruned.bleu"},
          {"relation", "above"},
          {"bound", "less.pruned.bleu"},
          {"left", 31.62},
          {"right", 31.04},
          {"holds", holds},
          {"undecided", undecided},
          {"difference", 0.58},
          {"low", 0.35},
          {"high", 0.85},
          {"differences", {0.5, 0.6, 0.64}},
          {"control", "random heads"}};
}

/// Two arms with three seeds each.
json small_experiment() {
  json file{{"name", "toy"},
            {"question", "does more help?"},
            {"paper", "1905.09418"},
            {"command", "tools/headlab run toy.json"},
            {"runs", json::array()},
            {"compare",
             {claim("is better", true, false), claim("is far better", false, false),
              claim("is a little better", false, true)}},
            {"summary", json::array()}};
  for (const auto* arm : {"less", "more"}) {
    for (int seed = 1; seed <= 3; ++seed)
      file["runs"].push_back({{"label", std::string(arm) + ", seed=" + std::to_string(seed)},
                              {"arm", arm},
                              {"group", arm},
                              {"seed", seed},
                              {"id", arm + std::to_string(seed)}});
    file["summary"].push_back({{"group", arm},
                               {"stage", "pruned"},
                               {"measure", "bleu"},
                               {"mean", 31.04},
                               {"low", 30.2},
                               {"high", 31.9},
                               {"values", {31.0, 31.1, 31.02}}});
    file["summary"].push_back({{"group", arm},
                               {"stage", "pruned"},
                               {"measure", "heads"},
                               {"mean", std::string(arm) == "less" ? 12 : 24},
                               {"low", 12},
                               {"high", 12},
                               {"values", {12, 12, 12}}});
  }
  return file;
}

std::vector<RunFiles> small_runs() {
  std::vector<RunFiles> runs;
  for (const auto* arm : {"less", "more"})
    for (int seed = 1; seed <= 3; ++seed) {
      RunFiles run;
      run.results = {{"seconds", 60.0},
                     {"stages",
                      {{"pruned", {{"type", "evaluate"}, {"metrics", {{"bleu", 30 + seed}}}}},
                       {"curve",
                        {{"type", "curve"},
                         {"metric", "bleu"},
                         {"scores", "g"},
                         {"points", {{{"fraction", 0.5}, {"heads_kept", 12}, {"value", 20 + seed}}}}}}}},
                     {"expect",
                      {{{"claim", "keeps"},
                        {"that", "pruned.bleu"},
                        {"relation", "at_least"},
                        {"bound", "30"},
                        {"left", 30 + seed - (seed == 3 ? 4 : 0)},
                        {"right", 30},
                        {"holds", seed != 3}}}}};
      run.spec = {{"name", "toy"},
                  {"seed", seed},
                  {"stages", {{{"train", {{"steps", std::string(arm) == "less" ? 10 : 20}}}}}}};
      run.environment = {{"device", "cpu"}, {"threads", 2}};
      for (int step = 1; step <= 3; ++step)
        run.metrics.push_back(
            {{"stage", "train"}, {"step", step}, {"loss", 3.0 + seed - step}, {"valid", {{"bleu", 10 * step + seed}}}});
      runs.push_back(std::move(run));
    }
  return runs;
}

std::string small_page() { return experiment_html(small_experiment(), small_runs()); }

}  // namespace

TEST_CASE("the page of an experiment begins with its question and the three kinds of answer, each with its interval",
          "[report]") {
  const auto page = small_page();
  CHECK(page.find("<h1>does more help?</h1>") < page.find("1 of 4 claims hold; for 1 there is not enough evidence."));
  CHECK_THAT(
      page,
      ContainsSubstring(
          "<li class=\"holds\"><b>✓ holds</b><span>is better <span class=\"range\">control: random heads</span></span>"
          "<span class=\"numbers\">31.6 &gt; 31.0</span><code>more.pruned.bleu &gt; less.pruned.bleu</code>"));
  CHECK_THAT(page, ContainsSubstring("<li class=\"fails\"><b>✗ does not hold</b><span>is far better"));
  CHECK_THAT(page, ContainsSubstring("<li class=\"open\"><b>? not enough evidence</b><span>is a little better"));
  CHECK_THAT(page, ContainsSubstring("difference +0.58 (95 % interval +0.35 to +0.85, 3 seeds)"));
  CHECK(count(page, "<svg class=\"interval\"") == 3);
  // A claim of each run is joined over the runs: it fails in the two of seed 3, whose numbers are shown.
  CHECK_THAT(page, ContainsSubstring("holds in 4 of 6 runs") && ContainsSubstring("29.0 ≥ 30.0"));
}

TEST_CASE("the page of an experiment is well-formed, asks for nothing from outside, and its links lead somewhere",
          "[report]") {
  const auto page = small_page();
  CHECK(first_unbalanced(page) == "");
  for (const auto* outside : {"http:", "https:", "src=", "url(", "@import", "<link", "<iframe", "<img"}) {
    CAPTURE(outside);
    CHECK(count(without_scripts(page), outside) == 0);
  }
  const auto ids = all_matches(page, " id=\"([^\"]*)\"");
  const std::set<std::string> known(ids.begin(), ids.end());
  CHECK(known.size() == ids.size());
  for (const auto& link : all_matches(page, "href=\"#([^\"]*)\"")) CHECK(known.count(link) == 1);
  CHECK_THAT(page, ContainsSubstring("<a href=\"less1/report.html\">less1</a>") &&
                       ContainsSubstring("<a href=\"more3/report.html\">more3</a>"));
}

TEST_CASE(
    "the page of an experiment shows results with intervals, what the arms differ in, curves and training with bands",
    "[report]") {
  const auto page = small_page();
  CHECK_THAT(page, ContainsSubstring("31.0 <span class=\"range\">(30.2 to 31.9)</span>"));
  CHECK_THAT(page, ContainsSubstring("<th scope=\"row\">stages[0].train.steps</th><td>10</td><td>20</td>"));
  CHECK_THAT(page, ContainsSubstring("BLEU against heads kept: curve (g)"));
  CHECK(draws(page, "heads kept", "more", 12, 22));
  CHECK_THAT(page, ContainsSubstring("train: training loss"));
  CHECK(draws(page, "step", "less", 1, 4));
  CHECK_THAT(page, ContainsSubstring("train: validation BLEU"));
  CHECK(bands_of(page, 1) > 0);
  CHECK_THAT(page, ContainsSubstring("<code>tools/headlab run toy.json</code>"));
}

TEST_CASE("numbers that a sweep changes are axes, the other options name the lines", "[report]") {
  json file{{"runs", json::array()}, {"summary", json::array()}};
  std::vector<RunFiles> runs;
  for (const auto* scores : {"gradient", "norm"})
    for (const double fraction : {0.25, 0.5, 0.75}) {
      const auto group = std::string("scores=") + scores + ", fraction=" + json(fraction).dump();
      file["runs"].push_back({{"label", group}, {"group", group}, {"id", "x"}});
      file["summary"].push_back({{"group", group},
                                 {"stage", "pruned"},
                                 {"measure", "accuracy"},
                                 {"mean", 1 - fraction},
                                 {"values", {1 - fraction}}});
      file["summary"].push_back({{"group", group},
                                 {"stage", "pruned"},
                                 {"measure", "heads"},
                                 {"mean", 16 * (1 - fraction)},
                                 {"values", {16 * (1 - fraction)}}});
      RunFiles run;
      run.results = {{"stages", {{"pruned", {{"type", "evaluate"}, {"metrics", {{"accuracy", 1 - fraction}}}}}}}};
      run.spec = {{"stages", {{{"prune", {{"scores", scores}, {"select", {{"fraction", fraction}}}}}}}}};
      runs.push_back(std::move(run));
    }
  const auto page = experiment_html(file, runs);
  CHECK_THAT(page, ContainsSubstring("pruned: accuracy against fraction"));
  CHECK(draws(page, "fraction", "scores=norm", 0.75, 0.25));
  CHECK_THAT(page, ContainsSubstring("pruned: accuracy against the heads left"));
  CHECK(draws(page, "heads left", "scores=gradient", 12, 0.75));
}

TEST_CASE("heads of several runs are shown as means over the seeds, by group", "[report]") {
  json file{{"runs", json::array()}};
  std::vector<RunFiles> runs;
  for (const auto* group : {"a", "b"})
    for (int seed = 1; seed <= 2; ++seed) {
      file["runs"].push_back({{"group", group}, {"seed", seed}});
      RunFiles one;
      const double value = (group[0] == 'a' ? 1 : 10) * seed;
      one.results = {{"stages",
                      {{"importance",
                        {{"type", "score"},
                         {"method", "gradient"},
                         {"heads", {{"enc.self.0.0", value}, {"enc.self.0.1", 0.5}}}}}}}};
      runs.push_back(one);
    }
  const auto page = experiment_html(file, runs);
  CHECK_THAT(page, ContainsSubstring("a, Scores: importance (gradient)") && ContainsSubstring("mean over 2 seeds"));
  CHECK_THAT(page, ContainsSubstring("title=\"enc.self.0.0: 1.5 (importance, gradient, mean over 2 seeds)\""));
  CHECK_THAT(page, ContainsSubstring("title=\"enc.self.0.0: 15 (importance, gradient, mean over 2 seeds)\""));
  CHECK(all_matches(page, "<tr id=\"head-([^\"]*)\"").size() == 2);
}

TEST_CASE("a page of a hundred runs of 144 heads stays small", "[report]") {
  json file{{"runs", json::array()}, {"summary", json::array()}};
  std::vector<RunFiles> runs;
  for (int run = 0; run < 100; ++run) {
    const auto group = "arm " + std::to_string(run / 5);
    file["runs"].push_back({{"label", group + ", seed " + std::to_string(run % 5)},
                            {"group", group},
                            {"seed", run % 5},
                            {"id", "run" + std::to_string(run)}});
    RunFiles one;
    json scores = json::object(), ablated = json::object();
    for (const auto* stack : {"enc.self", "dec.self", "dec.cross"})
      for (int layer = 0; layer < 6; ++layer)
        for (int head = 0; head < 8; ++head) {
          const auto name = std::string(stack) + "." + std::to_string(layer) + "." + std::to_string(head);
          scores[name] = 0.123456789 * (run + 1) * (head + 1);
          ablated[name] = {{"bleu", 30.123456}, {"delta", -0.01234567 * head * run}};
        }
    json points = json::array();
    for (int i = 0; i < 10; ++i)
      points.push_back({{"fraction", 0.1 * i}, {"heads_kept", 144 - 14 * i}, {"value", 30.1 - i - 0.01 * run}});
    one.results = {{"stages",
                    {{"importance", {{"type", "score"}, {"method", "gradient"}, {"heads", scores}}},
                     {"ablate", {{"type", "ablate"}, {"metric", "bleu"}, {"baseline", 30.0}, {"heads", ablated}}},
                     {"curve", {{"type", "curve"}, {"metric", "bleu"}, {"scores", "importance"}, {"points", points}}},
                     {"full", {{"type", "evaluate"}, {"metrics", {{"bleu", 30.0 - 0.1 * run}}}}}}}};
    for (int step = 0; step < 2000; step += 10)
      one.metrics.push_back({{"stage", "train"}, {"step", step}, {"loss", 5.0 / (step + 1)}, {"lr", 0.001}});
    runs.push_back(std::move(one));
  }
  const auto page = experiment_html(file, runs);
  CHECK(page.size() < 15'000'000);
  CHECK(all_matches(page, "<tr id=\"head-([^\"]*)\"").size() == 144);
  CHECK(first_unbalanced(page) == "");
}

TEST_CASE("text within an experiment's files can't become markup, and parts that are missing or odd still make a page",
          "[report]") {
  const std::string bad = "<script>alert(1)</script>\"' onclick=x \xff\x01";
  auto file = small_experiment();
  auto runs = small_runs();
  poison(file, bad);
  for (auto& run : runs) {
    auto curve = run.results["stages"]["curve"];
    poison(run.results, bad);
    run.results["stages"][bad] = {{"type", "evaluate"}, {"metrics", {{bad, 1.0}}}};
    run.results["stages"][bad + "2"] = curve;
    run.spec[bad] = bad + std::to_string(&run - runs.data());
    run.environment = {{bad, bad}};
    for (auto& row : run.metrics) row["stage"] = bad, row["valid"] = {{bad, 1.0}};
  }
  const auto page = experiment_html(file, runs);
  CHECK(count(page, "<script>") ==
        (charts_in(page).empty() ? 1 : 2));  // ours and D3's; what they hold is no text of the run's
  CHECK(count(page, "<script>alert") == 0);
  CHECK(count(without_scripts(page), "alert(1)") > 10);
  CHECK(count(without_scripts(page), "' onclick") == 0);
  CHECK(page.find('\xff') == std::string::npos);
  CHECK(first_unbalanced(page) == "");
  for (
      const auto* text :
      {"{}", "[]", "null", R"({"runs": 3, "compare": {}, "summary": [1, {}, {"mean": 1}]})",
       R"({"runs": [1, {"id": "../x"}], "compare": [1, {"differences": 2}], "summary": [{"mean": null, "values": [null]}]})"}) {
    CAPTURE(text);
    for (const std::size_t number : {0, 2}) {
      const auto odd = experiment_html(json::parse(text), std::vector<RunFiles>(number));
      CHECK(first_unbalanced(odd) == "");
      CHECK_THAT(odd, ContainsSubstring("<main>"));
      CHECK(count(odd, "../x/report.html") == 0);
    }
  }
}
