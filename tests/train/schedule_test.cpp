#include "src/train/schedule.h"

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "tests/catch.h"

namespace headlab {
namespace {

constexpr int64_t d_model = 256, steps = 10000, warmup = 400;
constexpr double peak = 2e-3;

/// The schedule with these values where it has such options.
std::shared_ptr<Schedule> made(const std::string& type, const std::map<std::string, double>& values) {
  Choice choice(schedule_catalogue, type);
  Fields fields;
  choice.options().describe(fields);
  for (const auto& field : fields.all()) {
    const auto found = values.find(field.name);
    if (found == values.end()) continue;
    if (auto* const* number = std::get_if<double*>(&field.value)) **number = found->second;
    if (auto* const* number = std::get_if<int64_t*>(&field.value)) **number = static_cast<int64_t>(found->second);
  }
  return schedules().make(choice, d_model, steps);
}

struct Case {
  std::string type;
  std::map<std::string, double> values;
  std::function<double(double step)> after_warmup;  // closed form
};

const std::vector<Case>& cases() {
  constexpr double w = warmup, n = steps;
  static const std::vector<Case> all{
      {"transformer",
       {{"warmup", w}, {"factor", 2}},
       [](double s) { return 2 * std::pow(d_model, -0.5) * std::pow(s, -0.5); }},
      {"constant", {{"warmup", w}, {"peak", peak}}, [](double) { return peak; }},
      {"inverse_sqrt", {{"warmup", w}, {"peak", peak}}, [](double s) { return peak * std::pow(s / warmup, -0.5); }},
      {"stepwise",
       {{"warmup", w}, {"peak", peak}, {"every", 500}, {"factor", 0.5}},
       [](double s) { return peak * std::pow(0.5, std::floor((s - warmup) / 500)); }},
      {"linear",
       {{"warmup", w}, {"peak", peak}, {"end", 0.1}},
       [](double s) { return peak + (s - w) / (n - w) * (0.1 * peak - peak); }},
      {"cosine", {{"warmup", w}, {"peak", peak}, {"end", 0.1}}, [](double s) {
         return 0.1 * peak + 0.5 * (peak - 0.1 * peak) * (1 + std::cos(std::acos(-1.0) * (s - w) / (n - w)));
       }}};
  return all;
}

}  // namespace

TEST_CASE("every schedule is its closed form at step 1, at the warm-up, at four times it and at the end", "[train]") {
  std::set<std::string> tested;
  for (const auto& c : cases()) {
    INFO(c.type);
    tested.insert(c.type);
    const auto schedule = made(c.type, c.values);
    CHECK(schedule->rate(1) == Approx(c.after_warmup(warmup) / warmup).epsilon(1e-12));
    CHECK(schedule->rate(warmup / 2) == Approx(c.after_warmup(warmup) / 2).epsilon(1e-12));
    for (const int64_t step : {warmup, warmup + 1, 4 * warmup, steps})
      CHECK(schedule->rate(step) == Approx(c.after_warmup(static_cast<double>(step))).epsilon(1e-12));
  }
  const auto names = schedule_catalogue().names();
  CHECK(tested == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("a schedule without warm-up begins at its peak", "[train]") {
  for (const std::string type : {"constant", "stepwise", "linear", "cosine"}) {
    INFO(type);
    const auto schedule = made(type, {{"peak", peak}, {"warmup", 0}});
    CHECK(schedule->rate(1) == Approx(peak).epsilon(1e-3));
    CHECK(schedule->rate(1) <= peak);
  }
}

}  // namespace headlab
