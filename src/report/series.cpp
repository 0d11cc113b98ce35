#include "src/report/series.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/metrics/interval.h"
#include "src/report/chart.h"
#include "src/report/figures.h"
#include "src/report/html.h"

namespace headlab::report {
namespace {

constexpr std::size_t most_lines = Chart::colours;

void add_line(Chart& chart, const Series& series, int colour, int pattern) {
  Chart::Line line{series.name, {}, colour, pattern, false, true};
  Chart::Band band{"", {}, colour, series.name};
  for (auto& point : series.points) {
    line.points.emplace_back(point.x, point.y);
    bool ranged = point.low && point.high && std::isfinite(*point.low) && std::isfinite(*point.high);
    if (ranged) band.ranges.push_back({point.x, *point.low, *point.high});
  }
  if (line.points.empty()) return;
  chart.lines.push_back(std::move(line));
  if (!band.ranges.empty()) chart.bands.push_back(std::move(band));
}

/// "41.9 (38.0 to 44.1)"
html::Cell cell_of(const std::string& metric, const Series::Point& point) {
  auto cell = html::number_cell(figure(metric, point.y), point.y);
  if (point.low && point.high) {
    cell.content += " <span class=\"range\">(" +
                    html::escape(figure(metric, *point.low) + " to " + figure(metric, *point.high)) + ")</span>";
  }
  return cell;
}

std::string table_of(const SeriesChart& chart, const std::vector<const Series*>& columns) {
  std::map<double, std::vector<html::Cell>> rows;
  std::vector<std::string> headers{chart.x_title};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    headers.push_back(columns[i]->name);
    for (auto& point : columns[i]->points) {
      auto& cells = rows[point.x];
      cells.resize(columns.size());
      cells[i] = cell_of(chart.metric, point);
    }
  }
  std::vector<html::Row> table;
  for (auto& [x, cells] : rows) {
    html::Row row{{html::number_cell(significant(x, 6), x)}};
    row.cells.insert(row.cells.end(), cells.begin(), cells.end());
    table.push_back(std::move(row));
  }
  return html::table(chart.title, headers, table);
}

}  // namespace

Series::Point spread_point(double x, const std::vector<double>& values) {
  auto interval = mean_interval(values);
  if (values.size() == 1 || !std::isfinite(interval.mean)) return {x, interval.mean, std::nullopt, std::nullopt};
  if (values.size() > 2) return {x, interval.mean, interval.low, interval.high};
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {x, interval.mean, *low, *high};
}

std::string band_note(std::size_t seeds) {
  if (seeds < 2) return "";
  if (seeds == 2) return "Bands: lowest to highest of 2 seeds.";
  return "Bands: 95 % interval of the mean over " + std::to_string(seeds) + " seeds (Student's t).";
}

std::string SeriesChart::html() const {
  std::string result;
  auto parts = (series.size() + most_lines - 1) / most_lines;
  bool each = controls.size() == series.size() && controls.size() > 1;
  for (std::size_t part = 0; part < parts; ++part) {
    Chart chart{title + (parts > 1 ? " (" + std::to_string(part + 1) + " of " + std::to_string(parts) + ")" : ""),
                x_title,
                {},
                {},
                note,
                250};
    std::vector<const Series*> columns;
    auto end = std::min(series.size(), (part + 1) * most_lines);
    for (auto i = part * most_lines; i < end; ++i) {
      auto colour = static_cast<int>(i % most_lines);
      constexpr int beside_dotted[] = {0, 1, 3, 4};  // where the controls are the dotted ones
      add_line(chart, series[i], colour, each ? beside_dotted[colour % 4] : colour % Chart::patterns);
      columns.push_back(&series[i]);
      if (!each) continue;
      add_line(chart, controls[i], colour, 2);
      columns.push_back(&controls[i]);
    }
    if (!each) {
      for (auto& control : controls) {
        add_line(chart, control, Chart::neutral, 2);
        columns.push_back(&control);
      }
    }
    auto drawn = chart.html();
    if (!drawn.empty()) result += "<div>" + drawn + html::details("The values", table_of(*this, columns)) + "</div>\n";
  }
  return result;
}

}  // namespace headlab::report
