#include "src/report/chart.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/report/figures.h"
#include "src/report/html.h"

namespace headlab {

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<std::pair<double, double>> result;
  std::size_t stretches = std::max<std::size_t>(1, most / 2);
  for (std::size_t i = 0; i < stretches; ++i) {
    auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / stretches);
    auto end = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / stretches);
    auto below = [](auto& a, auto& b) { return a.second < b.second; };
    auto [lowest, highest] = std::minmax_element(begin, end, below);
    result.push_back(*std::min(lowest, highest));
    if (lowest != highest) result.push_back(*std::max(lowest, highest));
  }
  return result;
}

std::string Chart::html() const {
  constexpr std::size_t drawn_points = 600;
  using json = nlohmann::ordered_json;
  auto drawn_lines = json::array(), drawn_bands = json::array();
  std::string summary = title;
  bool any = false;
  for (auto& line : lines) {
    auto points = json::array();
    for (auto& [x, y] : thinned(line.points, drawn_points)) {
      points.push_back({x, std::isfinite(y) ? json(y) : json()});
      any = any || std::isfinite(y);
    }
    drawn_lines.push_back({{"name", line.name},
                           {"colour", line.colour},
                           {"pattern", std::clamp(line.pattern, 0, patterns - 1)},
                           {"faint", line.faint},
                           {"marks", line.marks},
                           {"points", points}});
    if (line.points.empty() || line.faint) continue;
    auto& [first_x, first_y] = line.points.front();
    auto& [last_x, last_y] = line.points.back();
    summary += "; " + line.name + ": " + significant(first_y, 4) + " at " + significant(first_x, 6) + ", " +
               significant(last_y, 4) + " at " + significant(last_x, 6);
  }
  for (auto& band : bands) {
    auto ranges = json::array();
    for (auto& range : band.ranges)
      if (std::isfinite(range.low) && std::isfinite(range.high)) ranges.push_back({range.x, range.low, range.high});
    any = any || !ranges.empty();
    if (!ranges.empty())
      drawn_bands.push_back({{"name", band.name}, {"of", band.of}, {"colour", band.colour}, {"ranges", ranges}});
  }
  if (!any) return "";
  summary += " (" + x_title + ")";
  const json data{
      {"summary", summary}, {"x", x_title}, {"height", height}, {"lines", drawn_lines}, {"bands", drawn_bands}};
  return "<figure class=\"chart\"><figcaption><b>" + html::escape(title) +
         "</b></figcaption>\n<div class=\"plot\" tabindex=\"0\" role=\"group\" aria-label=\"" +
         html::escape(title + "; arrow keys go from point to point") + "\"></div>" + html::data(data) +
         (note.empty() ? "" : "<p class=\"note\">" + html::escape(note) + "</p>") + "</figure>\n";
}

}  // namespace headlab
