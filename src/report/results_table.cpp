#include "src/report/sections.h"

#include <algorithm>
#include <functional>
#include <map>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

namespace {

/// The values of one thing over repetitions.
struct Spread {
  std::vector<double> values;
  double mean() const {
    double sum = 0;
    for (auto value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
};

/// One line of the table of results: a stage, or the same stage of all repetitions.
struct Evaluated {
  std::string name;
  const json* first = nullptr;
  int64_t runs = 1;
  std::map<std::string, Spread> metrics, plain;
};

void add_values(Evaluated& to, const json& result) {
  if (!to.first) to.first = &result;
  auto& metrics = member(result, "metrics");
  for (auto& [metric, value] : metrics.items()) {
    if (auto number = number_of(metrics, metric)) to.metrics[metric].values.push_back(*number);
  }
  for (auto* key : {"heads", "parameters", "seconds"}) {
    if (auto number = number_of(result, key)) to.plain[key].values.push_back(*number);
  }
}

std::vector<Evaluated> evaluated(const Run& run) {
  std::vector<Evaluated> rows;
  for (auto& stage : run.stages) {
    if (stage.type == "evaluate") {
      rows.push_back({stage.name, nullptr, 1, {}, {}});
      add_values(rows.back(), stage.result);
    }
    auto& runs = member(stage.result, "runs");
    if (stage.type != "repeat" || !runs.is_array()) continue;
    std::vector<Evaluated> repeated;
    for (auto& one : runs) {
      if (!one.is_object()) continue;
      for (auto& [name, result] : one.items()) {
        if (text_of(result, "type") != "evaluate") continue;
        auto full = stage.name + "/" + name;
        auto found = std::find_if(repeated.begin(), repeated.end(), [&](auto& row) { return row.name == full; });
        if (found == repeated.end()) found = repeated.insert(repeated.end(), Evaluated{full, nullptr, 0, {}, {}});
        ++found->runs;
        add_values(*found, result);
      }
    }
    rows.insert(rows.end(), repeated.begin(), repeated.end());
  }
  return rows;
}

/// "41.9" or, of repetitions, "41.9 (38.0 to 44.1)".
Cell spread_cell(const Spread& spread, const std::function<std::string(double)>& text) {
  if (spread.values.empty()) return {};
  auto cell = number_cell(text(spread.mean()), spread.mean());
  auto [low, high] = std::minmax_element(spread.values.begin(), spread.values.end());
  if (*low != *high) {
    cell.content += " <span class=\"range\">(" + escape(text(*low) + " to " + text(*high)) + ")</span>";
  }
  return cell;
}

}  // namespace

std::string results_table(const Run& run) {
  auto rows = evaluated(run);
  std::vector<std::string> metrics;
  std::vector<std::pair<std::string, std::string>> signatures;  // metric, signature
  for (auto& row : rows) {
    for (auto& [metric, value] : member(*row.first, "metrics").items()) {
      if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
    }
    for (auto& [metric, signature] : member(*row.first, "signature").items()) {
      if (!signature.is_string()) continue;
      std::pair<std::string, std::string> item{metric, signature.get<std::string>()};
      if (std::find(signatures.begin(), signatures.end(), item) == signatures.end()) signatures.push_back(item);
    }
  }
  std::vector<std::string> headers = {"model", "split"};
  for (auto& metric : metrics)
    headers.push_back(metric_title(metric) + (less_is_better(metric) ? " (less is better)" : ""));
  headers.insert(headers.end(), {"heads", "parameters", "time"});
  bool repeated = false;
  std::vector<Row> table;
  for (auto& row : rows) {
    repeated = repeated || row.runs > 1;
    Row line;
    auto name = text_cell(row.name);
    if (row.runs > 1) name.content += " <span class=\"range\">mean of " + std::to_string(row.runs) + "</span>";
    line.cells = {name, text_cell(text_of(*row.first, "split"))};
    for (auto& metric : metrics) {
      line.cells.push_back(spread_cell(row.metrics[metric], [&](double value) { return figure(metric, value); }));
    }
    auto count = [](double value) { return std::isfinite(value) ? with_commas(std::llround(value)) : "nan"; };
    line.cells.push_back(spread_cell(row.plain["heads"], count));
    line.cells.push_back(spread_cell(row.plain["parameters"], count));
    line.cells.push_back(spread_cell(row.plain["seconds"], duration));
    table.push_back(line);
  }
  std::string notes;
  for (auto& [metric, signature] : signatures) {
    notes += "<p class=\"soft\">" + escape(metric_title(metric)) + ": <code>" + escape(signature) + "</code></p>\n";
  }
  return html::table(repeated ? "Evaluations; of repetitions the mean (lowest to highest)" : "Evaluations", headers,
                     table) +
         notes;
}

}  // namespace headlab::report
