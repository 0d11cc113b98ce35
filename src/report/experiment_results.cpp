#include <algorithm>
#include <set>

#include "src/report/experiment.h"
#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::escape;
using html::number_cell;
using html::text_cell;

namespace {

constexpr std::size_t most_summary_rows = 4000;  // a page of more would not scroll smoothly
constexpr std::size_t most_differences = 40;

/// "82.7 (82.1 to 83.3)", or of one seed its value.
html::Cell interval_cell(const Measured* row, const std::string& metric) {
  if (!row) return {};
  auto cell = number_cell(figure(metric, row->mean), row->mean);
  if (row->values.size() > 1) {
    cell.content +=
        " <span class=\"range\">(" + escape(figure(metric, row->low) + " to " + figure(metric, row->high)) + ")</span>";
  }
  return cell;
}

/// "78.4  77.6  79.0", one a seed.
std::string values_text(const Measured& row) {
  std::string text;
  for (auto value : row.values) text += (text.empty() ? "" : "  ") + significant(value, 5);
  return text;
}

/// The leaves of a spec by their path.
void leaves_of(const json& value, const std::string& path, std::vector<std::pair<std::string, std::string>>& to) {
  if (value.is_object()) {
    for (auto& [key, item] : value.items()) leaves_of(item, path.empty() ? key : path + "." + key, to);
  } else if (value.is_array() &&
             std::any_of(value.begin(), value.end(), [](auto& item) { return item.is_structured(); })) {
    for (std::size_t i = 0; i < value.size(); ++i) leaves_of(value[i], path + "[" + std::to_string(i) + "]", to);
  } else {
    to.emplace_back(path, value.is_string() ? value.get<std::string>() : dump(value));
  }
}

}  // namespace

std::string experiment_results(const Experiment& experiment) {
  std::vector<std::string> stages, metrics;
  for (auto& [stage, metric] : experiment.metrics) {
    if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  }
  std::vector<std::string> headers{"runs", "stage", "seeds"};
  for (auto& metric : metrics)
    headers.push_back(metric_title(metric) + (less_is_better(metric) ? " (less is better)" : ""));
  headers.insert(headers.end(), {"heads", "parameters"});
  std::vector<html::Row> rows;
  bool seeds = false;
  for (auto& group : experiment.groups) {
    for (auto& stage : stages) {
      html::Row row{{text_cell(Experiment::shown(group)), text_cell(stage), {}}};
      std::size_t most = 0;
      for (auto& metric : metrics) {
        auto* found = experiment.find(group.name, stage, metric);
        if (found) most = std::max(most, found->values.size());
        row.cells.push_back(interval_cell(found, metric));
      }
      if (most == 0) continue;
      seeds = seeds || most > 1;
      row.cells[2] = number_cell(std::to_string(most), static_cast<double>(most));
      for (auto* measure : {"heads", "parameters"}) {
        auto* found = experiment.find(group.name, stage, measure);
        row.cells.push_back(found ? number_cell(found->mean >= 100'000 ? with_commas(std::llround(found->mean))
                                                                       : significant(found->mean, 4),
                                                found->mean)
                                  : html::Cell{});
      }
      rows.push_back(std::move(row));
    }
  }
  auto table =
      html::table(seeds ? "Evaluations: the mean over the seeds (its 95 % interval, Student's t)" : "Evaluations",
                  headers, rows, true);
  std::vector<html::Row> all;
  for (auto& row : experiment.summary) {
    if (all.size() == most_summary_rows) break;
    auto number = [](double value) { return number_cell(significant(value, 5), value); };
    all.push_back({{text_cell(row.group.empty() ? "all runs" : row.group), text_cell(row.stage), text_cell(row.measure),
                    row.at ? number_cell(significant(100 * *row.at, 4), *row.at) : html::Cell{}, number(row.mean),
                    number(row.low), number(row.high), text_cell(values_text(row))}});
  }
  auto more = experiment.summary.size() > all.size()
                  ? "<p class=\"soft\">" + with_commas(static_cast<int64_t>(experiment.summary.size() - all.size())) +
                        " more rows are in summary.csv.</p>\n"
                  : std::string();
  auto everything =
      html::table("All that was measured, as in summary.csv",
                  {"runs", "stage", "measure", "masked, %", "mean", "low", "high", "of each seed"}, all, true);
  return table + (everything.empty()
                      ? ""
                      : html::details("All that was measured", "<div class=\"tall\">" + everything + "</div>" + more));
}

std::string experiment_differences(const Experiment& experiment) {
  if (experiment.groups.size() < 2) return "";
  static const std::set<std::string> aside{"seed", "name", "question", "paper"};
  std::vector<std::string> keys;  // as they first come
  std::vector<std::map<std::string, std::string>> values;
  std::set<std::string> known;
  for (auto& group : experiment.groups) {
    std::vector<std::pair<std::string, std::string>> leaves;
    leaves_of(experiment.runs[group.runs.front()].spec, "", leaves);
    values.emplace_back();
    for (auto& [key, value] : leaves) {
      auto top = key.substr(0, key.find_first_of(".["));
      if (aside.count(top) || top == "expect" || top == "compare") continue;
      values.back()[key] = value;
      if (known.insert(key).second) keys.push_back(key);
    }
  }
  auto same = [&](const std::string& key) {
    auto first = values.front().find(key);
    return std::all_of(values.begin(), values.end(), [&](auto& one) {
      auto found = one.find(key);
      return found != one.end() && first != values.front().end() && found->second == first->second;
    });
  };
  keys.erase(std::remove_if(keys.begin(), keys.end(), same), keys.end());
  auto left_out = keys.size() - std::min(keys.size(), most_differences);
  keys.resize(keys.size() - left_out);
  // A few arms are columns; else the longer side goes down the page.
  bool options_down = experiment.groups.size() <= 4 || keys.size() >= experiment.groups.size();
  auto value_of = [&](std::size_t group, const std::string& key) {
    auto found = values[group].find(key);
    return text_cell(found == values[group].end() ? "–" : found->second);
  };
  std::vector<std::string> headers{options_down ? "option" : "runs"};
  std::vector<html::Row> rows;
  for (auto& group : experiment.groups) {
    if (options_down)
      headers.push_back(Experiment::shown(group));
    else
      rows.push_back({{text_cell(Experiment::shown(group))}});
  }
  for (auto& key : keys) {
    if (options_down)
      rows.push_back({{text_cell(key)}});
    else
      headers.push_back(key);
    for (std::size_t group = 0; group < values.size(); ++group) {
      (options_down ? rows.back() : rows[group]).cells.push_back(value_of(group, key));
    }
  }
  if (keys.empty()) return "";
  return html::table("Options that are not the same in all runs", headers, rows) +
         (left_out ? "<p class=\"soft\">" + std::to_string(left_out) +
                         " more options differ; each run's page has its whole spec.</p>\n"
                   : "");
}

}  // namespace headlab::report
