#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/report/experiment.h"
#include "src/report/figures.h"
#include "src/report/series.h"

namespace headlab::report {
namespace {

constexpr std::size_t most_charts = 24, most_groups_drawn = 12;

/// The numbers and words of a spec by their path.
void scalars_of(const json& value, const std::string& path, std::map<std::string, json>& to) {
  if (value.is_object()) {
    for (auto& [key, item] : value.items()) scalars_of(item, path.empty() ? key : path + "." + key, to);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) scalars_of(value[i], path + "[" + std::to_string(i) + "]", to);
  } else {
    to[path] = value;
  }
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// A number that a sweep changes, and the lines along it: groups that are alike but for it.
struct SweepAxis {
  std::string key;
  std::vector<std::pair<std::string, std::vector<std::pair<double, const RunGroup*>>>> lines;
};

std::vector<SweepAxis> axes_of(const Experiment& experiment) {
  std::vector<std::map<std::string, json>> specs;
  std::set<std::string> keys;
  static const std::set<std::string> aside{"seed",    "name",  "question", "paper", "expect",
                                           "compare", "sweep", "arms",     "seeds"};
  for (auto& group : experiment.groups) {
    specs.emplace_back();
    std::map<std::string, json> all;
    scalars_of(experiment.runs[group.runs.front()].spec, "", all);
    for (auto& [key, value] : all) {
      if (!aside.count(key.substr(0, key.find_first_of(".[")))) specs.back().emplace(key, value), keys.insert(key);
    }
  }
  std::vector<std::string> varied;
  for (auto& key : keys) {
    std::set<std::string> values;
    for (auto& spec : specs) {
      auto found = spec.find(key);
      values.insert(found == spec.end() ? "" : dump(found->second));
    }
    if (values.size() > 1) varied.push_back(key);
  }
  std::vector<SweepAxis> axes;
  for (auto& key : varied) {
    SweepAxis axis{key, {}};
    for (std::size_t i = 0; i < specs.size(); ++i) {
      auto found = specs[i].find(key);
      if (found == specs[i].end() || !found->second.is_number()) continue;
      std::string line;
      for (auto& other : varied) {
        if (other == key) continue;
        auto value = specs[i].find(other);
        auto text = value == specs[i].end()     ? "–"
                    : value->second.is_string() ? value->second.get<std::string>()
                                                : dump(value->second);
        line += (line.empty() ? "" : ", ") + last_part(other) + "=" + text;
      }
      auto place = std::find_if(axis.lines.begin(), axis.lines.end(), [&](auto& one) { return one.first == line; });
      if (place == axis.lines.end()) place = axis.lines.insert(axis.lines.end(), {line, {}});
      place->second.emplace_back(found->second.get<double>(), &experiment.groups[i]);
    }
    auto alone = [](auto& line) { return line.second.size() < 2; };
    axis.lines.erase(std::remove_if(axis.lines.begin(), axis.lines.end(), alone), axis.lines.end());
    for (auto& [name, groups] : axis.lines)
      std::sort(groups.begin(), groups.end(), [](auto& a, auto& b) { return a.first < b.first; });
    if (!axis.lines.empty()) axes.push_back(std::move(axis));
  }
  return axes;
}

std::size_t seeds_of(const Experiment& experiment) {
  std::size_t most = 0;
  for (auto& group : experiment.groups) most = std::max(most, group.runs.size());
  return most;
}

/// Whether the groups' models are evaluated with different numbers of heads.
bool heads_vary(const Experiment& experiment, const std::string& stage) {
  std::set<double> heads;
  for (auto& group : experiment.groups) {
    if (auto* found = experiment.find(group.name, stage, "heads")) heads.insert(found->mean);
  }
  return heads.size() > 1;
}

}  // namespace

std::string experiment_sweeps(const Experiment& experiment) {
  if (experiment.groups.size() < 2) return "";
  std::string charts;
  std::size_t drawn = 0;
  auto axes = axes_of(experiment);
  auto add = [&](SeriesChart&& chart) {
    if (chart.series.empty() || drawn == most_charts) return;
    chart.note = band_note(seeds_of(experiment));
    auto html = chart.html();
    drawn += !html.empty();
    charts += html;
  };
  for (auto& [stage, metric] : experiment.metrics) {
    for (auto& axis : axes) {
      SeriesChart by_value{stage + ": " + metric_title(metric) + " against " + last_part(axis.key),
                           last_part(axis.key),
                           metric,
                           {},
                           {},
                           ""};
      SeriesChart by_heads{
          stage + ": " + metric_title(metric) + " against the heads left", "heads left", metric, {}, {}, ""};
      for (auto& [name, groups] : axis.lines) {
        Series along{name.empty() ? metric_title(metric) : name, {}}, heads = along;
        for (auto& [x, group] : groups) {
          auto* found = experiment.find(group->name, stage, metric);
          if (!found) continue;
          along.points.push_back(spread_point(x, found->values));
          auto* left = experiment.find(group->name, stage, "heads");
          if (left) heads.points.push_back(spread_point(left->mean, found->values));
        }
        std::sort(heads.points.begin(), heads.points.end(), [](auto& a, auto& b) { return a.x < b.x; });
        if (!along.points.empty()) by_value.series.push_back(std::move(along));
        if (!heads.points.empty()) by_heads.series.push_back(std::move(heads));
      }
      add(std::move(by_value));
      if (heads_vary(experiment, stage)) add(std::move(by_heads));
    }
    // Arms that are not points on a line: each by itself.
    if (!axes.empty() || !heads_vary(experiment, stage)) continue;
    SeriesChart chart{
        stage + ": " + metric_title(metric) + " against the heads left", "heads left", metric, {}, {}, ""};
    for (auto& group : experiment.groups) {
      auto *left = experiment.find(group.name, stage, "heads"), *found = experiment.find(group.name, stage, metric);
      if (left && found) chart.series.push_back({Experiment::shown(group), {spread_point(left->mean, found->values)}});
    }
    add(std::move(chart));
  }
  return charts.empty() ? "" : "<div class=\"charts\">" + charts + "</div>\n";
}

std::string experiment_training(const Experiment& experiment) {
  // {stage, quantity} -> group -> step -> values of the seeds
  std::vector<
      std::pair<std::pair<std::string, std::string>, std::map<std::size_t, std::map<double, std::vector<double>>>>>
      quantities;
  auto add = [&](const std::string& stage, const std::string& quantity, std::size_t group, double step, double value) {
    std::pair key{stage, quantity};
    auto found = std::find_if(quantities.begin(), quantities.end(), [&](auto& one) { return one.first == key; });
    if (found == quantities.end()) found = quantities.insert(quantities.end(), {key, {}});
    found->second[group][step].push_back(value);
  };
  for (std::size_t group = 0; group < std::min(experiment.groups.size(), most_groups_drawn); ++group) {
    for (auto run : experiment.groups[group].runs) {
      for (auto& row : experiment.runs[run].metrics) {
        auto step = number_of(row, "step");
        if (!step || !row.contains("stage") || !row["stage"].is_string()) continue;
        auto stage = row["stage"].get<std::string>();
        if (stage.find('/') != std::string::npos) continue;  // of a repetition: on the run's own page
        if (auto loss = number_of(row, "loss")) add(stage, "training loss", group, *step, *loss);
        if (!row.contains("valid") || !row["valid"].is_object()) continue;
        for (auto& [metric, unused] : row["valid"].items()) {
          if (auto value = number_of(row["valid"], metric)) add(stage, metric, group, *step, *value);
        }
      }
    }
  }
  std::string charts;
  std::size_t drawn = 0;
  for (auto& [key, groups] : quantities) {
    auto& [stage, quantity] = key;
    bool training = quantity == "training loss";
    SeriesChart chart{stage + ": " + (training ? quantity : "validation " + metric_title(quantity)),
                      "step",
                      training ? "loss" : quantity,
                      {},
                      {},
                      band_note(seeds_of(experiment))};
    for (auto& [group, steps] : groups) {
      Series series{Experiment::shown(experiment.groups[group]), {}};
      for (auto& [step, values] : steps) series.points.push_back(spread_point(step, values));
      chart.series.push_back(std::move(series));
    }
    if (drawn++ < most_charts) charts += chart.html();
  }
  auto left_out = experiment.groups.size() - std::min(experiment.groups.size(), most_groups_drawn);
  return charts.empty() ? ""
                        : "<div class=\"charts\">" + charts + "</div>\n" +
                              (left_out ? "<p class=\"soft\">The first " + std::to_string(most_groups_drawn) +
                                              " groups are drawn.</p>\n"
                                        : "");
}

}  // namespace headlab::report
