#include <algorithm>
#include <numeric>

#include "modules/base/nearest.h"
#include "src/heads/scale.h"
#include "src/run/stages/stages.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

/// {"enc.self": 9, ...}: the heads of each stack that are not masked.
nlohmann::ordered_json kept_by_stack(const HeadTable& there, const HeadSet& off) {
  auto kept = nlohmann::ordered_json::object();
  for (const auto& [stack, layers] : there) {
    const auto in_stack = [stack = stack](const HeadId& head) { return head.stack == stack; };
    int64_t count = -static_cast<int64_t>(std::count_if(off.begin(), off.end(), in_stack));
    for (const auto& heads : layers) count += static_cast<int64_t>(heads.size());
    kept[stack_name(stack)] = count;
  }
  return kept;
}

}  // namespace

void CurveStageOptions::describe(Fields& fields) {
  describe_common(fields, "curve");
  fields.add("scores", scores, "the score stage whose scores select").required();
  fields.add("fractions", fractions, "shares of the heads that are masked, one point each").at_least(0).at_most(1);
  fields.add("metric", metric, "what is measured").metric().means("absent: the task's first");
  fields.add("scope", scope, "what the fractions are of").one_of({"global", "stack", "layer"});
  fields.add("stacks", stacks, "mask heads of these stacks alone")
      .one_of({"enc.self", "dec.self", "dec.cross"})
      .means("empty: all");
  fields.add("highest", highest, "mask the heads of the highest scores first: what a good score makes worst");
  fields.add("random_sets", random_sets, "random sets of the same size at each point, as the control").at_least(0);
  fields.add("threshold", threshold, "tells after how many masked heads the metric lies under this")
      .means("absent: nothing is told");
  fields.add("evaluate", evaluate, "on what it is measured");
}

void CurveStageOptions::stage_rules(const std::string& place, const EarlierStages& known, Problems& problems) const {
  if (!known.count(scores)) problems.add(place + ".scores", "no earlier stage is called " + in_quotes(scores));
}

nlohmann::ordered_json CurveStage::run(RunContext& context) {
  const auto stage = options_.name.empty() ? "curve" : options_.name;
  auto model = context.model(options_.model);
  const auto there = model->heads();
  const auto scores = context.scores(options_.scores);
  const auto metric = metric_or_first(context.task(options_.task), options_.metric);
  auto evaluation = options_.evaluate;
  evaluation.metrics = {metric};
  evaluation.samples = 0;
  const auto masked = context.masked(options_.model);  // by a mask stage: they stay so at every point
  const auto with_masked = [&](HeadSet chosen) {
    chosen.insert(chosen.end(), masked.begin(), masked.end());
    return sorted_set(std::move(chosen));
  };
  const auto measure = [&](const HeadSet& off) {
    return context.task(options_.task).evaluate(*model, evaluation, mask_scale(*model, off)).metrics.at(metric);
  };
  const auto total = static_cast<int64_t>(options_.fractions.size()) * (1 + options_.random_sets);
  int64_t done = 0;
  const auto moved = [&] { context.console().progress("curve", ++done, total, metric + " against heads kept"); };
  auto points = nlohmann::ordered_json::array();
  for (const auto fraction : options_.fractions) {
    SelectOptions select;
    select.fraction = fraction;
    select.scope = options_.scope;
    select.stacks = options_.stacks;
    select.highest = options_.highest;
    const auto off = with_masked(select_heads(there, scores, select));
    nlohmann::ordered_json point{{"fraction", fraction},
                                 {"heads_kept", heads_of(there).size() - off.size()},
                                 {"kept_by_stack", kept_by_stack(there, off)},
                                 {"value", measure(off)}};
    moved();
    std::vector<double> values;
    for (int64_t i = 0; i < options_.random_sets; ++i) {
      values.push_back(measure(with_masked(random_heads(there, select, context.seed_of(stage + std::to_string(i))))));
      moved();
    }
    if (!values.empty()) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      point["random"] = {
          {"mean", std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())},
          {"low", *low},
          {"high", *high},
          {"values", values}};
    }
    points.push_back(point);
  }
  nlohmann::ordered_json result{
      {"metric", metric},        {"scores", options_.scores}, {"model", context.resolve(options_.model)},
      {"scope", options_.scope}, {"stacks", options_.stacks}, {"highest", options_.highest}};
  if (options_.threshold) {
    const auto all = static_cast<int64_t>(heads_of(there).size());
    // The first point under the threshold, of the curve (-1) or of a random set.
    const auto falls_after = [&](int64_t set) {
      for (const auto& point : points) {
        const double at = set < 0 ? point.at("value").get<double>()
                                  : point.at("random").at("values").at(static_cast<std::size_t>(set)).get<double>();
        if (at < *options_.threshold) return all - point.at("heads_kept").get<int64_t>();
      }
      return all + 1;
    };
    result["falls_after"] = falls_after(-1);
    double sum = 0;
    for (int64_t i = 0; i < options_.random_sets; ++i) sum += static_cast<double>(falls_after(i));
    if (options_.random_sets > 0) result["random_falls_after"] = sum / static_cast<double>(options_.random_sets);
  }
  result["points"] = points;
  context.console().line("curve", std::to_string(points.size()) + " points of " + metric + " against heads kept");
  return result;
}

}  // namespace headlab
