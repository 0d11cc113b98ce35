#include "src/report/pruning.h"

#include <cmath>

#include "src/report/sections.h"
#include "tests/catch.h"
#include "tests/report/page_checks.h"

using namespace headlab;
using namespace headlab::report;
using namespace headlab::test;

namespace {

const std::vector<nlohmann::json> no_metrics;
const nlohmann::ordered_json nothing = nlohmann::ordered_json::object();

nlohmann::ordered_json results(const std::string& stages) {
  return {{"stages", nlohmann::ordered_json::parse(stages)}};
}

std::string charts_of(const nlohmann::ordered_json& of) {
  return pruning_curves(Run(of, no_metrics, nothing, nothing));
}

/// A curve of two points; `more`: further keys.
std::string curve(const std::string& scores, double whole, double half, const std::string& more = "",
                  const std::string& at_half = "") {
  return R"({"type": "curve", "metric": "accuracy", "scores": ")" + scores + "\", " + more +
         R"("points": [{"fraction": 0, "heads_kept": 8, "value": )" + std::to_string(whole) +
         R"(}, {"fraction": 0.5, "heads_kept": 4, "value": )" + std::to_string(half) + at_half + "}]}";
}

std::string random_values(const std::string& values, double mean) {
  return R"(, "random": {"mean": )" + std::to_string(mean) + R"(, "low": 0, "high": 1, "values": )" + values + "}";
}

}  // namespace

TEST_CASE("what heads are chosen by stands in one chart, with one control of all random sets", "[report]") {
  const auto page =
      charts_of(results(R"({"g": {"type": "score", "method": "gradient"}, "n": {"type": "score", "method": "norm"},
    "by_gradient": )" + curve("g", 1, 0.9, "", random_values("[0.2, 0.4]", 0.3)) +
                        R"(, "by_norm": )" + curve("n", 1, 0.8, "", random_values("[0.6, 0.8]", 0.7)) +
                        R"(, "worst": )" + curve("g", 1, 0.1, R"("highest": true, )") + "}"));
  CHECK(count(page, "<figure") == 1);
  CHECK_THAT(page, ContainsSubstring("by_gradient (gradient)") && ContainsSubstring("by_norm (norm)") &&
                       ContainsSubstring("worst (gradient, highest first)"));
  CHECK(bands_of(page, 6) == 1);
  // The mean of all four sets, with their lowest and highest.
  CHECK_THAT(page, ContainsSubstring("0.500 <span class=\"range\">(0.200 to 0.800)</span>"));
  CHECK_THAT(page, ContainsSubstring("Grey: the mean of 4 random sets of as many heads, and their lowest to highest."));
  CHECK(first_unbalanced(page) == "");
}

TEST_CASE("curves of stacks are drawn by the heads kept in the stack and by the share masked", "[report]") {
  const auto of = [](const std::string& stack, int kept) {
    return R"({"type": "curve", "metric": "bleu", "scores": "g", "stacks": [")" + stack + R"("], "points": [
      {"fraction": 0, "heads_kept": 12, "kept_by_stack": {"enc.self": 4, "dec.self": 4, "dec.cross": 4}, "value": 30},
      {"fraction": 0.75, "heads_kept": 9, "kept_by_stack": {"enc.self": 4, "dec.self": 4, "dec.cross": 4, ")" +
           stack + "\": " + std::to_string(kept) + R"(}, "value": 20}]})";
  };
  const auto page = charts_of(results(R"({"e": )" + of("enc.self", 1) + R"(, "d": )" + of("dec.self", 1) +
                                      R"(, "c": )" + of("dec.cross", 1) + "}"));
  CHECK(count(page, "<figure") == 2);
  CHECK_THAT(page, ContainsSubstring("BLEU against heads kept in a stack: g"));
  CHECK(draws(page, "heads kept in the stack", "dec.cross", 1, 20));
  CHECK_THAT(page, ContainsSubstring("BLEU against the share masked of a stack: g"));
  CHECK(draws(page, "share masked, %", "enc.self", 75, 20));
}

TEST_CASE("what the results of a curve do not say of its stack is taken from the spec and the scored heads",
          "[report]") {
  const auto of = results(
      R"({"g": {"type": "score", "method": "gradient", "heads": {"enc.self.0.0": 1, "enc.self.0.1": 1, "dec.cross.0.0": 1, "dec.cross.0.1": 1}},
    "enc": {"type": "curve", "metric": "bleu", "scores": "g", "points": [{"fraction": 0.5, "heads_kept": 3, "value": 20}]},
    "cross": {"type": "curve", "metric": "bleu", "scores": "g", "points": [{"fraction": 0.5, "heads_kept": 3, "value": 10}]}})");
  const auto spec = nlohmann::ordered_json::parse(
      R"({"stages": [{"train": {"name": ""}}, {"curve": {"name": "enc", "stacks": ["enc.self"], "scope": "global"}},
    {"curve": {"name": "cross", "stacks": ["dec.cross"], "highest": true}}]})");
  const auto curves = pruning_curves_of(of, spec);
  REQUIRE(curves.size() == 2);
  CHECK((curves[0].stacks == "enc.self" && curves[1].stacks == "dec.cross" && curves[1].highest));
  CHECK(curves[0].points[0].in_stacks == 1);
  CHECK(pruning_curves_of(of)[0].stacks.empty());
}

TEST_CASE("over seeds a curve is its mean with Student's interval, of two seeds lowest to highest", "[report]") {
  std::vector<nlohmann::ordered_json> seeds;
  for (const double value : {1.0, 2.0, 3.0})
    seeds.push_back(results(R"({"curve": )" + curve("g", 5, value, "", random_values("[0, 1]", value / 2)) + "}"));
  CurveGroup group{"", {}};
  for (const auto& seed : seeds) group.runs.push_back(pruning_curves_of(seed));
  auto page = pruning_charts({group});
  // 2 +- 4.30265 / sqrt(3) = -0.484 to 4.484; of the control half of it.
  CHECK_THAT(page, ContainsSubstring("2.000 <span class=\"range\">(-0.484 to 4.484)</span>"));
  CHECK_THAT(page, ContainsSubstring("1.000 <span class=\"range\">(-0.242 to 2.242)</span>"));
  CHECK_THAT(page, ContainsSubstring("5.000 <span class=\"range\">(5.000 to 5.000)</span>"));
  CHECK_THAT(page, ContainsSubstring("Bands: 95 % interval of the mean over 3 seeds (Student&#39;s t)."));
  group.runs.pop_back();
  page = pruning_charts({group});
  CHECK_THAT(page, ContainsSubstring("1.500 <span class=\"range\">(1.000 to 2.000)</span>"));
  CHECK_THAT(page, ContainsSubstring("Bands: lowest to highest of 2 seeds."));
}

TEST_CASE("arms of equal size are compared by heads kept, others by the share that is masked", "[report]") {
  const auto one = pruning_curves_of(results(R"({"curve": )" + curve("g", 1, 0.9) + "}"));
  auto other = one;
  auto page = pruning_charts({{"a", {one}}, {"b", {other}}});
  CHECK(count(page, "<figure") == 1);  // each has one criterion: no chart of its own
  CHECK(draws(page, "heads kept", "b", 4, 0.9));
  for (auto& point : other.front().points) point.heads_kept = 2 * *point.heads_kept;
  page = pruning_charts({{"a", {one}}, {"b", {other}}});
  CHECK(draws(page, "share masked, %", "b", 50, 0.9));
}

TEST_CASE("repetitions that prune again and again are a curve, others are not", "[report]") {
  const auto with_heads = [](int second) {
    return results(
        R"({"rounds": {"type": "repeat", "runs": [{"left": {"type": "evaluate", "heads": 12, "metrics": {"bleu": 30}}},
      {"left": {"type": "evaluate", "heads": )" +
        std::to_string(second) + R"(, "metrics": {"bleu": 25}}}]}})");
  };
  const auto curves = pruning_curves_of(with_heads(6));
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].stage == "rounds/left");
  REQUIRE(curves[0].points.size() == 2);
  CHECK(curves[0].points[1].heads_kept == 6);
  CHECK(curves[0].points[1].value == 25);
  CHECK(pruning_curves_of(with_heads(12)).empty());
}

TEST_CASE("repetitions that each set something of their own are a curve by the heads that they leave, in any order",
          "[report]") {
  const auto curves =
      pruning_curves_of(results(R"({"gates": {"type": "repeat", "with": [{"a": 1}, {"a": 2}, {"a": 3}], "runs": [
      {"left": {"type": "evaluate", "heads": 9, "metrics": {"bleu": 28}}}, {"left": {"type": "evaluate", "heads": 12, "metrics": {"bleu": 30}}},
      {"left": {"type": "evaluate", "heads": 9, "metrics": {"bleu": 26}}}]}})"));
  REQUIRE(curves.size() == 1);
  REQUIRE(curves[0].points.size() == 3);
  CHECK(curves[0].points[0].heads_kept == 12);
  CHECK(curves[0].points[2].value == 26);
  CHECK(draws(pruning_charts({{"", {curves}}}), "heads kept", "gates/left (each repetition's own)", 9,
              27));  // the mean of the two
}

TEST_CASE("points without a number of heads or a value are left out, and many lines are dealt out to several charts",
          "[report]") {
  CHECK(
      charts_of(
          results(
              R"({"a": {"type": "curve", "points": [{}, {"heads_kept": null, "value": 1}, {"heads_kept": 3}]}, "b": {"type": "curve", "points": 7}})"))
          .empty());
  const auto page = charts_of(results(
      R"({"a": {"type": "curve", "metric": "bleu", "points": [{"heads_kept": 3, "value": null}, {"heads_kept": 4, "value": 2}]}})"));
  REQUIRE(charts_in(page).size() == 1);
  CHECK(charts_in(page)[0]["lines"][0]["points"].size() == 2);
  CHECK(charts_in(page)[0]["lines"][0]["points"][0][1].is_null());
  std::string many = "{";
  for (int i = 0; i < 8; ++i) many += (i ? ", " : "") + ("\"c" + std::to_string(i) + "\": ") + curve("g", 1, 0.1 * i);
  const auto charts = charts_of(results(many + "}"));
  CHECK(count(charts, "<figure") == 2);
  CHECK_THAT(charts, ContainsSubstring("(1 of 2)") && ContainsSubstring("(2 of 2)") && ContainsSubstring("c7 (g)"));
}
