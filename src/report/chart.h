#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headlab {

/// A line chart as inline SVG: axes with round numbers, a legend where there is more than one line, and the values of
/// each point as the browser's hover text. Lines differ by dashes as well as by colour.
struct Chart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x, y, in the order of x; a y that is not finite breaks the line
    int colour = 0;                                 // 0 to 3
    bool dashed = false, faint = false;             // faint: one of many alike, left out of the legend
    bool marks = false;                             // a dot at each point
  };
  struct Band {  // between two lines
    struct Range { double x, low, high; };
    std::string name;
    std::vector<Range> ranges;
    int colour = 0;
  };
  std::string title, x_title;
  std::vector<Line> lines;
  std::vector<Band> bands;

  /// An HTML figure; empty where no point can be drawn. Lines of many points are drawn by the lowest and highest of
  /// each stretch, so that no spike is lost.
  std::string html() const;
};

/// Round numbers, 3 to `most` of them where the range is not empty, from below or at `low` to at or above `high`.
std::vector<double> round_ticks(double low, double high, int most);

/// The points that a line of at most about `most` points is drawn by.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, std::size_t most);

}  // namespace headlab
