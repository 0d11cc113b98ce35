#include "src/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/report/figures.h"
#include "src/report/html.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

// In units of the drawing, which is scaled to the width of the page.
constexpr double width = 380, left = 52, right = 12, top = 10, bottom = 42;
constexpr std::size_t drawn_points = 600, hover_points = 120;

std::string at(double x, double y) { return fixed(x, 1) + "," + fixed(y, 1); }

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// Maps one axis to the drawing.
struct Axis {
  Axis(Extent extent, double from, double to, int most, bool round_ends) : from(from), to(to) {
    ticks = round_ticks(extent.low, extent.high, most);
    low = round_ends ? ticks.front() : extent.low;
    high = round_ends ? ticks.back() : extent.high;
    if (low == high) low = ticks.front(), high = ticks.back();
  }
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
  bool holds(double value) const {
    double slack = (high - low) * 1e-9;
    return value >= low - slack && value <= high + slack;
  }
  double from, to, low, high;
  double step() const { return ticks[1] - ticks[0]; }
  std::vector<double> ticks;
};

/// A tick's number; all of an axis have equally many digits after the point.
std::string tick_text(double value, double step) {
  if (std::abs(value) < step / 2) return "0";
  if (step >= 1) return std::abs(value) >= 100'000 ? short_number(value) : significant(value, 6);
  auto digits = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return digits <= 4 ? fixed(value, digits) : significant(value, 3);
}

/// The class of a line's colour and dashes.
std::string style_of(const Chart::Line& line) {
  constexpr const char* dashes[Chart::patterns] = {"", " dashed", " dotted", " dashdot", " long"};
  auto pattern = static_cast<std::size_t>(std::clamp(line.pattern, 0, Chart::patterns - 1));
  return "c" + std::to_string(line.colour) + dashes[pattern] + (line.faint ? " faint" : "");
}

/// The outline of a mark around a point; each colour has a shape of its own.
std::string mark(int colour, double x, double y) {
  auto outline = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string path;
    for (auto& [dx, dy] : corners) path += (path.empty() ? "M" : "L") + at(x + dx, y + dy);
    return path + "Z";
  };
  switch (colour) {
    case 1: return outline({{-3, -3}, {3, -3}, {3, 3}, {-3, 3}});                  // square
    case 2: return outline({{0, -4}, {3.7, 2.8}, {-3.7, 2.8}});                    // triangle
    case 3: return outline({{0, -4.3}, {4.3, 0}, {0, 4.3}, {-4.3, 0}});            // diamond
    case 4: return outline({{0, 4}, {3.7, -2.8}, {-3.7, -2.8}});                   // triangle on its tip
    case 5: return outline({{-3.6, -1.2}, {-1.2, -1.2}, {-1.2, -3.6}, {1.2, -3.6}, {1.2, -1.2}, {3.6, -1.2}, {3.6, 1.2},
                            {1.2, 1.2}, {1.2, 3.6}, {-1.2, 3.6}, {-1.2, 1.2}, {-3.6, 1.2}});  // cross
    default: {
      auto radius = colour == Chart::neutral ? 2.0 : 3.2;
      auto r = fixed(radius, 1), arc = "A" + r + "," + r + " 0 1 0 ";
      return "M" + at(x - radius, y) + arc + at(x + radius, y) + arc + at(x - radius, y) + "Z";
    }
  }
}

/// How the legend shows a line: its dashes and its mark.
std::string key_of(const Chart::Line& line) {
  auto style = style_of(line);
  return "<svg class=\"key\" viewBox=\"0 0 36 10\" aria-hidden=\"true\"><path class=\"line " + style + "\" d=\"M1,5H35\"/>" +
         (line.marks ? "<path class=\"mark " + style + "\" d=\"" + mark(line.colour, 18, 5) + "\"/>" : "") + "</svg>";
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int most) {
  if (low == high) {
    double around = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= around;
    high += around;
  }
  double step = std::pow(10.0, std::floor(std::log10((high - low) / most)));
  // 1 2 5 10 ...: the first with which there are few enough.
  for (int i = 0; std::ceil(high / step - 1e-9) - std::floor(low / step + 1e-9) + 1 > most && i < 12; ++i) {
    step *= i % 3 == 1 ? 2.5 : 2;
  }
  std::vector<double> ticks;
  auto first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

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
  Extent xs, ys;
  std::string summary = title;
  for (auto& line : lines) {
    for (auto& [x, y] : line.points) {
      if (!std::isfinite(y)) continue;
      xs.add(x);
      ys.add(y);
    }
    if (!line.points.empty() && !line.faint) {
      auto& [first_x, first_y] = line.points.front();
      auto& [last_x, last_y] = line.points.back();
      summary += "; " + line.name + ": " + significant(first_y, 4) + " at " + significant(first_x, 6) + ", " +
                 significant(last_y, 4) + " at " + significant(last_x, 6);
    }
  }
  for (auto& band : bands) {
    for (auto& range : band.ranges) xs.add(range.x), ys.add(range.low), ys.add(range.high);
  }
  if (xs.empty() || ys.empty()) return "";
  Axis x(xs, left, width - right, 7, false), y(ys, height - bottom, top, 6, true);

  std::string svg = "<svg viewBox=\"0 0 " + fixed(width, 0) + " " + fixed(height, 0) + "\" role=\"img\" aria-label=\"" +
                    html::escape(summary + " (" + x_title + ")") + "\">\n<g class=\"axes\">";
  for (auto tick : y.ticks) {
    svg += "<path d=\"M" + at(left, y(tick)) + "H" + fixed(width - right, 1) + "\"/><text x=\"" + fixed(left - 7, 1) +
           "\" y=\"" + fixed(y(tick) + 4, 1) + "\" text-anchor=\"end\">" + html::escape(tick_text(tick, y.step())) +
           "</text>";
  }
  for (auto tick : x.ticks) {
    if (!x.holds(tick)) continue;
    svg += "<path d=\"M" + at(x(tick), height - bottom) + "v5\"/><text x=\"" + fixed(x(tick), 1) + "\" y=\"" +
           fixed(height - bottom + 18, 1) + "\" text-anchor=\"middle\">" + html::escape(tick_text(tick, x.step())) +
           "</text>";
  }
  svg += "<text x=\"" + fixed((left + width - right) / 2, 1) + "\" y=\"" + fixed(height - 8, 1) +
         "\" text-anchor=\"middle\">" + html::escape(x_title) + "</text></g>\n";

  std::string legend, bands_legend;
  for (auto& band : bands) {
    auto colour = std::to_string(band.colour);
    if (band.ranges.size() == 1) {  // of a lone point: a line up and down
      auto& range = band.ranges.front();
      svg += "<path class=\"line c" + colour + "\" d=\"M" + at(x(range.x), y(range.low)) + "V" + fixed(y(range.high), 1) + "\"/>\n";
      continue;
    }
    std::string over, back;
    for (auto& range : band.ranges) {
      over += at(x(range.x), y(range.high)) + " ";
      back = at(x(range.x), y(range.low)) + " " + back;
    }
    svg += "<polygon class=\"band c" + colour + "\" points=\"" + over + back + "\"/>\n";
    if (band.name.empty()) continue;
    bands_legend += "<span><i class=\"area c" + colour + "\"></i>" + html::escape(band.name) + "</span> ";
  }
  for (auto& line : lines) {
    auto style = style_of(line);
    std::string path;
    bool pen_down = false;
    for (auto& [px, py] : thinned(line.points, drawn_points)) {
      if (std::isfinite(py)) path += (pen_down ? "L" : "M") + at(x(px), y(py));
      pen_down = std::isfinite(py);
    }
    svg += "<path class=\"line " + style + "\" d=\"" + path + "\"/>\n";
    if (line.faint) continue;
    svg += "<g class=\"" + std::string(line.marks ? "marks " : "points ") + style + "\">";
    for (auto& [px, py] : thinned(line.points, hover_points)) {
      if (!std::isfinite(py)) continue;
      auto hover = "<title>" + html::escape(line.name + ": " + significant(py, 4) + " at " + x_title + " " + significant(px, 6)) +
                   "</title>";
      svg += line.marks ? "<path d=\"" + mark(line.colour, x(px), y(py)) + "\">" + hover + "</path>"
                        : "<circle cx=\"" + fixed(x(px), 1) + "\" cy=\"" + fixed(y(py), 1) + "\" r=\"5\">" + hover + "</circle>";
    }
    svg += "</g>\n";
    legend += "<span>" + key_of(line) + html::escape(line.name) + "</span> ";
  }
  bool one = bands_legend.empty() && std::count_if(lines.begin(), lines.end(), [](auto& line) { return !line.faint; }) < 2;
  return "<figure class=\"chart\"><figcaption><b>" + html::escape(title) + "</b>" +
         (one ? "" : "<span class=\"legend\">" + legend + bands_legend + "</span>") + "</figcaption>\n" + svg + "</svg>" +
         (note.empty() ? "" : "<p class=\"note\">" + html::escape(note) + "</p>") + "</figure>\n";
}

}  // namespace headlab
