#pragma once

#include <optional>
#include <string>
#include <vector>

/// Lines that are compared with each other, each with what is known of its spread: as a chart, and as a table beside
/// it.
namespace headlab::report {

struct Series {
  struct Point {
    double x, y;
    std::optional<double> low, high;  // of the band
  };
  std::string name;
  std::vector<Point> points;  // in the order of x
};

/// The mean of values that differ by their seed alone, and its band: of three and more the 95 % interval of the mean
/// (Student's t), of two the lowest to the highest, of one none. Values that are not finite make a point that is not
/// drawn. Throws Error without values.
Series::Point spread_point(double x, const std::vector<double>& values);

/// What the note of a chart says of such bands; empty for one seed.
std::string band_note(std::size_t seeds);

struct SeriesChart {
  std::string title, x_title;
  std::string metric;  // whose digits the values have
  std::vector<Series> series;
  std::vector<Series> controls;  // what chance does: one, in grey, or as many as `series`, each dotted in its colour
  std::string note;

  /// The drawing and, behind a summary, its values as a table. At most 6 series stand in one drawing: more are dealt
  /// out to several. Empty where nothing can be drawn.
  std::string html() const;
};

}  // namespace headlab::report
