#include "src/report/pruning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "src/report/figures.h"
#include "src/report/sections.h"
#include "src/report/series.h"

namespace headlab::report {
namespace {

/// Of finite numbers.
std::optional<double> finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (auto& name : names) text += (text.empty() ? "" : " + ") + name;
  return text;
}

/// The options of a curve stage in a resolved spec; an empty object where it is not there.
const json& options_of(const std::string& stage, const json& spec) {
  auto& stages = member(spec, "stages");
  if (stages.is_array()) {
    for (auto& one : stages) {
      auto& options = member(one, "curve");
      auto name = text_of(options, "name");
      if (!options.empty() && (name.empty() ? "curve" : name) == stage) return options;
    }
  }
  return member(stages, "");
}

/// The heads of these stacks, and all, among the scored ones.
std::pair<double, double> scored_heads(const json& heads, const std::vector<std::string>& stacks) {
  double inside = 0, all = 0;
  if (!heads.is_object()) return {0, 0};
  for (auto& [name, unused] : heads.items()) {
    auto place = place_of(name);
    ++all;
    inside += place && std::find(stacks.begin(), stacks.end(), place->stack) != stacks.end();
  }
  return {inside, all};
}

PruningCurve curve_of(const Stage& stage, const json& stages, const json& spec) {
  PruningCurve curve;
  auto& result = stage.result;
  auto& said = result.contains("stacks") || result.contains("highest") ? result : options_of(stage.name, spec);
  curve.stage = stage.name;
  curve.metric = text_of(result, "metric");
  auto scores = text_of(result, "scores");
  curve.criterion = text_of(member(stages, scores), "method");
  if (curve.criterion.empty()) curve.criterion = scores;
  curve.scope = text_of(said, "scope");
  curve.model = text_of(said, "model");
  curve.highest = member(said, "highest") == true;
  auto stacks = names_in(member(said, "stacks"));
  auto [in_stacks, in_all] = scored_heads(member(member(stages, scores), "heads"), stacks);
  curve.stacks = joined(stacks);
  auto& points = member(result, "points");
  if (!points.is_array()) return curve;
  for (auto& point : points) {
    auto value = number_of(point, "value");
    if (!value) continue;
    PruningCurve::Point made{finite(number_of(point, "fraction")),
                             finite(number_of(point, "heads_kept")),
                             std::nullopt,
                             *value,
                             {},
                             std::nullopt,
                             std::nullopt,
                             std::nullopt};
    if (!made.fraction && !made.heads_kept) continue;
    auto& kept = member(point, "kept_by_stack");
    for (auto& stack : stacks) {
      if (auto number = finite(number_of(kept, stack))) made.in_stacks = made.in_stacks.value_or(0) + *number;
    }
    if (!made.in_stacks && in_stacks > 0 && made.heads_kept) made.in_stacks = in_stacks - (in_all - *made.heads_kept);
    auto& random = member(point, "random");
    made.random_mean = number_of(random, "mean");
    made.random_low = number_of(random, "low");
    made.random_high = number_of(random, "high");
    auto& values = member(random, "values");
    if (values.is_array()) {
      for (auto& one : values) {
        if (one.is_number()) made.random.push_back(one.get<double>());
      }
    }
    curve.points.push_back(std::move(made));
  }
  return curve;
}

/// What the repetitions of a repeat come to, one after another; no points unless heads go from one to the next.
std::vector<PruningCurve> curves_of_repeat(const Stage& stage) {
  std::vector<PruningCurve> curves;
  auto& runs = member(stage.result, "runs");
  if (!runs.is_array()) return curves;
  auto varied = member(stage.result, "with").is_array();
  for (auto& run : runs) {
    if (!run.is_object()) return {};
    for (auto& [name, result] : run.items()) {
      auto heads = finite(number_of(result, "heads"));
      auto& metrics = member(result, "metrics");
      if (text_of(result, "type") != "evaluate" || !heads || !metrics.is_object() || metrics.empty()) continue;
      auto full = stage.name + "/" + name;
      auto found = std::find_if(curves.begin(), curves.end(), [&](auto& curve) { return curve.stage == full; });
      if (found == curves.end()) {
        PruningCurve fresh;
        fresh.stage = full;
        fresh.metric = metrics.begin().key();
        fresh.criterion = varied ? "each repetition's own" : "again and again";
        found = curves.insert(curves.end(), std::move(fresh));
      }
      if (auto value = number_of(metrics, found->metric)) {
        found->points.push_back(
            {std::nullopt, heads, std::nullopt, *value, {}, std::nullopt, std::nullopt, std::nullopt});
      }
    }
  }
  auto stays = [](const PruningCurve& curve) {
    return std::adjacent_find(curve.points.begin(), curve.points.end(),
                              [](auto& a, auto& b) { return *a.heads_kept <= *b.heads_kept; }) != curve.points.end() ||
           curve.points.size() < 2;
  };
  if (varied) {  // each by itself, in any order; equal numbers of heads stand beside each other
    for (auto& curve : curves)
      std::stable_sort(curve.points.begin(), curve.points.end(),
                       [](auto& a, auto& b) { return *a.heads_kept > *b.heads_kept; });
  } else {
    curves.erase(std::remove_if(curves.begin(), curves.end(), stays), curves.end());
  }
  return curves;
}

enum class Along { heads_kept, in_stacks, share };

std::optional<double> x_of(const PruningCurve::Point& point, Along along) {
  if (along == Along::heads_kept) return point.heads_kept;
  if (along == Along::in_stacks) return point.in_stacks;
  return point.fraction ? std::optional(100 * *point.fraction) : std::nullopt;
}

std::string x_title(Along along) {
  return along == Along::heads_kept  ? "heads kept"
         : along == Along::in_stacks ? "heads kept in the stack"
                                     : "share masked, %";
}

/// One stage of a group: its curve in each run that has it.
struct Entry {
  std::vector<const PruningCurve*> curves;
  const PruningCurve& first() const { return *curves.front(); }
};

/// Points of equal fraction are one point, at the mean of where they lie.
template <class Value>
Series over_seeds(const std::string& name, const Entry& entry, Along along, Value values_at) {
  struct Place {
    double sum = 0;
    std::vector<double> values;
    std::optional<double> low, high;  // of one run, of its random sets
  };
  std::map<double, Place> places;
  for (auto* curve : entry.curves) {
    for (auto& point : curve->points) {
      auto x = x_of(point, along);
      if (x) values_at(point, places[point.fraction ? *point.fraction : *x], *x);
    }
  }
  Series series{name, {}};
  for (auto& [key, place] : places) {
    if (place.values.empty()) continue;
    auto made = spread_point(place.sum / static_cast<double>(place.values.size()), place.values);
    if (place.values.size() == 1) made.low = place.low, made.high = place.high;
    series.points.push_back(made);
  }
  std::sort(series.points.begin(), series.points.end(), [](auto& a, auto& b) { return a.x < b.x; });
  return series;
}

Series line_of(const std::string& name, const Entry& entry, Along along) {
  return over_seeds(name, entry, along, [](auto& point, auto& place, double x) {
    place.sum += x;
    place.values.push_back(point.value);
  });
}

Series control_of(const std::string& name, const Entry& entry, Along along) {
  return over_seeds(name, entry, along, [](auto& point, auto& place, double x) {
    if (!point.random_mean) return;
    place.sum += x;
    place.values.push_back(*point.random_mean);
    place.low = point.random_low;
    place.high = point.random_high;
  });
}

/// The random sets of several curves of a run on the same heads are draws of one kind: as one curve.
std::vector<PruningCurve> pooled(const std::vector<const Entry*>& entries) {
  std::vector<PruningCurve> runs;
  for (auto* entry : entries) {
    if (runs.size() < entry->curves.size()) runs.resize(entry->curves.size());
    for (std::size_t run = 0; run < entry->curves.size(); ++run) {
      for (auto& point : entry->curves[run]->points) {
        if (!point.random_mean) continue;
        auto& points = runs[run].points;
        auto same = [&](auto& other) {
          return other.fraction == point.fraction && other.heads_kept == point.heads_kept;
        };
        auto found = std::find_if(points.begin(), points.end(), same);
        if (found == points.end()) {
          points.push_back(point);
          continue;
        }
        if (point.random.empty() || found->random.empty()) continue;
        auto& all = found->random;
        all.insert(all.end(), point.random.begin(), point.random.end());
        auto [low, high] = std::minmax_element(all.begin(), all.end());
        double sum = 0;
        for (auto value : all) sum += value;
        found->random_mean = sum / static_cast<double>(all.size());
        found->random_low = *low;
        found->random_high = *high;
      }
    }
  }
  return runs;
}

Entry entry_of(const std::vector<PruningCurve>& curves) {
  Entry entry;
  for (auto& curve : curves) entry.curves.push_back(&curve);
  return entry;
}

std::size_t most_random(const std::vector<PruningCurve>& runs) {
  std::size_t most = 0;
  for (auto& run : runs) {
    for (auto& point : run.points) most = std::max(most, point.random.size());
  }
  return most;
}

std::size_t seeds_in(const std::vector<const Entry*>& entries) {
  std::size_t most = 0;
  for (auto* entry : entries) most = std::max(most, entry->curves.size());
  return most;
}

std::string note_of(std::size_t seeds, std::size_t sets, bool grey) {
  auto note = band_note(seeds);
  if (sets == 0) return note;
  auto number = std::to_string(sets) + (sets == 1 ? " random set" : " random sets");
  auto which = std::string(grey ? "Grey" : "Dotted") + ": ";
  if (seeds < 2) return which + "the mean of " + number + " of as many heads, and their lowest to highest.";
  return note + " " + which + "the mean of " + number + " of as many heads a seed.";
}

/// "gradient, lowest first"
std::string order_of(const PruningCurve& curve) {
  auto scope = curve.scope.empty() || curve.scope == "global" ? "" : ", by " + curve.scope;
  return curve.criterion + (curve.highest ? ", highest first" : "") + scope;
}

std::string name_of(const PruningCurve& curve) {
  auto order = order_of(curve);
  return order.empty() || order == curve.stage ? curve.stage : curve.stage + " (" + order + ")";
}

bool has(const Entry& entry, Along along) {
  auto has_x = [&](auto& point) { return x_of(point, along).has_value(); };
  return std::all_of(entry.curves.begin(), entry.curves.end(),
                     [&](auto* curve) { return std::all_of(curve->points.begin(), curve->points.end(), has_x); });
}

/// Heads kept, unless the entries do not mean the same by it.
Along along_of(const std::vector<const Entry*>& entries) {
  std::map<double, std::set<double>> kept;  // by fraction
  bool fractions = true;
  for (auto* entry : entries) {
    if (!has(*entry, Along::heads_kept)) return Along::share;
    fractions = fractions && has(*entry, Along::share);
    for (auto* curve : entry->curves) {
      for (auto& point : curve->points) {
        if (point.fraction) kept[*point.fraction].insert(*point.heads_kept);
      }
    }
  }
  auto one = [](auto& item) { return item.second.size() < 2; };
  return !fractions || std::all_of(kept.begin(), kept.end(), one) ? Along::heads_kept : Along::share;
}

struct Group {
  std::string name;
  std::vector<Entry> entries;  // in the order of the stages
};

std::vector<Group> grouped(const std::vector<CurveGroup>& groups) {
  std::vector<Group> result;
  for (auto& group : groups) {
    Group made{group.name, {}};
    for (auto& run : group.runs) {
      for (auto& curve : run) {
        if (curve.points.empty()) continue;
        auto same = [&](auto& entry) {
          return entry.first().stage == curve.stage && entry.first().metric == curve.metric;
        };
        auto found = std::find_if(made.entries.begin(), made.entries.end(), same);
        if (found == made.entries.end())
          made.entries.push_back({{&curve}});
        else
          found->curves.push_back(&curve);
      }
    }
    if (!made.entries.empty()) result.push_back(std::move(made));
  }
  return result;
}

/// The entries in parts of equal key, in the order in which the keys come.
template <class Key>
auto parted(const std::vector<const Entry*>& entries, Key key_of) {
  std::vector<std::pair<decltype(key_of(std::declval<const PruningCurve&>())), std::vector<const Entry*>>> parts;
  for (auto* entry : entries) {
    auto key = key_of(entry->first());
    auto found = std::find_if(parts.begin(), parts.end(), [&](auto& part) { return part.first == key; });
    if (found == parts.end())
      parts.push_back({key, {entry}});
    else
      found->second.push_back(entry);
  }
  return parts;
}

/// Several criteria on the same heads, with one control for each way to draw.
std::string criteria_chart(const std::string& group, const std::vector<const Entry*>& entries) {
  auto& first = entries.front()->first();
  auto along = along_of(entries);
  SeriesChart chart{metric_title(first.metric) + " against heads kept" +
                        (first.stacks.empty() ? "" : " in " + first.stacks) + (group.empty() ? "" : ": " + group),
                    x_title(along),
                    first.metric,
                    {},
                    {},
                    ""};
  for (auto* entry : entries) chart.series.push_back(line_of(name_of(entry->first()), *entry, along));
  std::size_t sets = 0;
  auto by_scope = parted(entries, [](auto& curve) { return curve.scope; });
  for (auto& [scope, same] : by_scope) {
    auto runs = pooled(same);
    auto control = control_of(by_scope.size() > 1 && !scope.empty() ? "random heads, by " + scope : "random heads",
                              entry_of(runs), along);
    if (control.points.empty()) continue;
    chart.controls.push_back(std::move(control));
    sets = std::max<std::size_t>(sets, std::max<std::size_t>(1, most_random(runs)));
  }
  bool each = chart.controls.size() > 1 && chart.controls.size() == chart.series.size();
  chart.note = note_of(seeds_in(entries), sets, !each);
  return chart.html();
}

/// One criterion on one stack after another.
std::string stacks_charts(const std::string& group, const std::vector<const Entry*>& entries) {
  auto& first = entries.front()->first();
  std::string result;
  for (auto along : {Along::in_stacks, Along::share}) {
    if (!std::all_of(entries.begin(), entries.end(), [&](auto* entry) { return has(*entry, along); })) continue;
    SeriesChart chart{
        metric_title(first.metric) +
            (along == Along::share ? " against the share masked of a stack" : " against heads kept in a stack") + ": " +
            order_of(first) + (group.empty() ? "" : ", " + group),
        x_title(along),
        first.metric,
        {},
        {},
        ""};
    std::size_t sets = 0;
    for (auto* entry : entries) {
      auto& curve = entry->first();
      chart.series.push_back(line_of(curve.stacks, *entry, along));
      chart.controls.push_back(control_of(curve.stacks + ", random heads", *entry, along));
      for (auto* one : entry->curves) {
        for (auto& point : one->points) sets = std::max(sets, point.random.size());
      }
    }
    auto none = [](auto& control) { return control.points.empty(); };
    if (std::all_of(chart.controls.begin(), chart.controls.end(), none)) chart.controls.clear();
    chart.note = note_of(seeds_in(entries), chart.controls.empty() ? 0 : sets, false);
    result += chart.html();
  }
  return result;
}

std::string arms_chart(const std::vector<const Group*>& groups, const std::vector<const Entry*>& entries) {
  constexpr std::size_t most_with_controls = 3;
  auto& first = entries.front()->first();
  auto along = along_of(entries);
  SeriesChart chart{
      metric_title(first.metric) + " against heads kept: " + name_of(first), x_title(along), first.metric, {}, {}, ""};
  std::size_t sets = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    chart.series.push_back(line_of(groups[i]->name, *entries[i], along));
    chart.controls.push_back(control_of(groups[i]->name + ", random heads", *entries[i], along));
    for (auto* curve : entries[i]->curves) {
      for (auto& point : curve->points) sets = std::max(sets, point.random.size());
    }
  }
  auto none = [](auto& control) { return control.points.empty(); };
  if (entries.size() > most_with_controls || std::all_of(chart.controls.begin(), chart.controls.end(), none))
    chart.controls.clear();
  chart.note = note_of(seeds_in(entries), chart.controls.empty() ? 0 : sets, false);
  return chart.html();
}

}  // namespace

std::vector<PruningCurve> pruning_curves_of(const json& results, const json& spec) {
  static const std::vector<nlohmann::json> no_metrics;
  static const json none = json::object();
  Run run(results, no_metrics, none, none);
  std::vector<PruningCurve> curves;
  for (auto& stage : run.stages) {
    if (stage.type == "curve") curves.push_back(curve_of(stage, member(results, "stages"), spec));
    if (stage.type != "repeat") continue;
    for (auto& curve : curves_of_repeat(stage)) curves.push_back(std::move(curve));
  }
  return curves;
}

std::string pruning_charts(const std::vector<CurveGroup>& given) {
  auto groups = grouped(given);
  std::string arms, criteria, stacks;
  if (groups.size() > 1) {
    std::vector<std::pair<std::string, std::string>> stages;  // {stage, metric}
    for (auto& group : groups) {
      for (auto& entry : group.entries) {
        std::pair key{entry.first().stage, entry.first().metric};
        if (std::find(stages.begin(), stages.end(), key) == stages.end()) stages.push_back(key);
      }
    }
    for (auto& [stage, metric] : stages) {
      std::vector<const Group*> with;
      std::vector<const Entry*> entries;
      for (auto& group : groups) {
        for (auto& entry : group.entries) {
          if (entry.first().stage != stage || entry.first().metric != metric) continue;
          with.push_back(&group);
          entries.push_back(&entry);
        }
      }
      arms += arms_chart(with, entries);
    }
  }
  for (auto& group : groups) {
    auto name = groups.size() > 1 ? group.name : "";
    std::vector<const Entry*> all, of_stacks;
    for (auto& entry : group.entries) {
      all.push_back(&entry);
      if (!entry.first().stacks.empty()) of_stacks.push_back(&entry);
    }
    std::set<const Entry*> by_stack;  // shown by stack
    auto same_order = [](auto& curve) { return std::tuple(curve.metric, curve.model, order_of(curve)); };
    for (auto& [key, entries] : parted(of_stacks, same_order)) {
      std::set<std::string> which;
      for (auto* entry : entries) which.insert(entry->first().stacks);
      if (which.size() < 2) continue;
      auto drawn = stacks_charts(name, entries);
      stacks += drawn;
      if (!drawn.empty()) by_stack.insert(entries.begin(), entries.end());
    }
    auto same_heads = [](auto& curve) { return std::tuple(curve.metric, curve.model, curve.stacks); };
    for (auto& [key, entries] : parted(all, same_heads)) {
      bool shown = entries.size() == 1 && (groups.size() > 1 || by_stack.count(entries.front()) > 0);
      if (!shown) criteria += criteria_chart(name, entries);
    }
  }
  std::pair<const char*, std::string*> parts[] = {
      {"Arms", &arms}, {"What the heads are chosen by", &criteria}, {"Stacks", &stacks}};
  auto used = std::count_if(std::begin(parts), std::end(parts), [](auto& part) { return !part.second->empty(); });
  std::string result;
  for (auto& [title, charts] : parts) {
    if (charts->empty()) continue;
    result += (used > 1 ? "<h3>" + html::escape(title) + "</h3>\n" : std::string()) + "<div class=\"charts\">" +
              *charts + "</div>\n";
  }
  return result;
}

std::string pruning_curves(const Run& run) {
  return pruning_charts({{"", {pruning_curves_of(run.results, run.spec)}}});
}

}  // namespace headlab::report
