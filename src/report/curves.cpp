#include "src/report/sections.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "src/report/chart.h"
#include "src/report/figures.h"

namespace headlab::report {

using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

namespace {

/// "random-3/train" is one of the repetitions of "random/train".
std::string without_number(const std::string& stage) {
  auto slash = stage.find('/');
  auto dash = stage.rfind('-', slash);
  if (slash == std::string::npos || dash == std::string::npos) return stage;
  bool digits = dash + 1 < slash && std::all_of(stage.begin() + static_cast<std::ptrdiff_t>(dash + 1),
                                                stage.begin() + static_cast<std::ptrdiff_t>(slash),
                                                [](unsigned char c) { return c >= '0' && c <= '9'; });
  return digits ? stage.substr(0, dash) + stage.substr(slash) : stage;
}

using Points = std::vector<std::pair<double, double>>;

struct Trained {
  std::string name;                              // of the stage in `metrics`
  std::map<std::string, Points> trained, valid;  // by quantity
};

constexpr std::pair<const char*, const char*> quantities[] = {
    {"loss", "loss (nats a token)"}, {"lr", "learning rate"}, {"grad_norm", "gradient norm, before clipping"}};

Chart::Line line(const std::string& name, const Points& points, int colour, int pattern, bool faint) {
  return {name, points, colour, pattern, faint, points.size() < 2};
}

}  // namespace

std::string curves(const Run& run) {
  std::vector<std::pair<std::string, std::vector<Trained>>> groups;  // stages; of repetitions all
  for (auto& row : run.metrics) {
    auto step = number_of(row, "step");
    if (!step || !row.contains("stage") || !row["stage"].is_string()) continue;
    auto name = row["stage"].get<std::string>(), group_name = without_number(name);
    auto same = [&](auto& group) { return group.first == group_name; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), {group_name, {}});
    auto series = std::find_if(group->second.begin(), group->second.end(), [&](auto& one) { return one.name == name; });
    if (series == group->second.end()) series = group->second.insert(group->second.end(), Trained{name, {}, {}});
    for (auto& [quantity, title] : quantities) {
      if (auto value = number_of(row, quantity)) series->trained[quantity].emplace_back(*step, *value);
    }
    if (!row.contains("valid") || !row["valid"].is_object()) continue;
    for (auto& [metric, unused] : row["valid"].items()) {
      if (auto value = number_of(row["valid"], metric)) series->valid[metric].emplace_back(*step, *value);
    }
  }
  std::string result;
  for (auto& [name, all] : groups) {
    bool faint = all.size() > 1;
    std::string charts;
    for (auto& [quantity, title] : quantities) {
      Chart chart{title, "step", {}, {}};
      for (auto& series : all) {
        if (series.trained.count(quantity)) {
          chart.lines.push_back(line("training", series.trained[quantity], 0, 0, faint));
        }
        if (std::string(quantity) == "loss" && series.valid.count(quantity)) {
          chart.lines.push_back(line("validation", series.valid[quantity], 1, 1, faint));
        }
      }
      charts += chart.html();
    }
    std::set<std::string> metrics;
    for (auto& series : all) {
      for (auto& [metric, points] : series.valid) metrics.insert(metric);
    }
    metrics.erase("loss");
    for (auto& metric : metrics) {
      Chart chart{"validation " + metric_title(metric), "step", {}, {}};
      for (auto& series : all) {
        if (series.valid.count(metric)) chart.lines.push_back(line("validation", series.valid[metric], 1, 1, faint));
      }
      charts += chart.html();
    }
    if (charts.empty()) continue;
    auto title = name + (faint ? ", " + std::to_string(all.size()) + " repetitions" : "");
    auto content = "<div class=\"charts\">" + charts + "</div>\n";
    result += faint ? html::details(title, content) : "<h3>" + escape(title) + "</h3>\n" + content;
  }
  return result;
}

}  // namespace headlab::report
