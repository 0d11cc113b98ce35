#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headlab {

/// A line chart, which the page's script draws with D3 (page/page.js): a legend that hides lines where there is more
/// than one, the values at the pointer or by the arrow keys, a logarithmic scale where values span much, a stretch of x
/// chosen with the mouse. Lines differ by their dashes and by the shape of their marks, not by colour alone.
struct Chart {
  static constexpr int colours = 6;   // 0 to 5
  static constexpr int neutral = 6;   // a grey for what the others are compared with
  static constexpr int patterns = 5;  // of dashes: 0 a whole line, 1 dashed, 2 dotted, 3 dash and dot, 4 long dashes
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // x, y, in the order of x; a y that is not finite breaks the line
    int colour = 0;                                 // 0 to 6; the shape of its marks goes with it
    int pattern = 0;
    bool faint = false;  // one of many alike, left out of the legend
    bool marks = false;  // a mark at each point
  };
  struct Band {  // between two lines
    struct Range {
      double x, low, high;
    };
    std::string name;  // in the legend; empty: not there (the note says what it is)
    std::vector<Range> ranges;
    int colour = 0;
    std::string of = {};  // the line that it goes with: both are hidden together
  };
  std::string title, x_title;
  std::vector<Line> lines;
  std::vector<Band> bands;
  std::string note = {};  // below the drawing: what bands are, of how many
  double height = 224;    // the drawing is 380 wide, and is scaled to the width of the page

  /// An HTML figure with the chart's data; empty where no point can be drawn. Lines of many points are drawn by the
  /// lowest and highest of each stretch, so that no spike is lost.
  std::string html() const;
};

/// The points that a line of at most about `most` points is drawn by.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, std::size_t most);

}  // namespace headlab
