#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "src/terminal/screen.h"

namespace headlab {

/// How far some work is:
///
///     train      [####......]   812/1,600  loss 1.204  ppl 3.33  21.3k tok/s  0:48 left
///
/// On a terminal one line, written over at most ten times a second and cut to the width. In a pipe or a file whole
/// lines without a bar, none for short work and at last one a minute: the first after 10 seconds, then with pauses that
/// double up to 60 seconds.
///
/// The time left is judged by the pace since the first update, so that work done before a resume does not count.
class Progress {
 public:
  /// `now` gives seconds of a clock that never goes back; absent: the machine's.
  Progress(std::ostream& out, const Screen& screen, std::string label, std::function<double()> now = {});
  ~Progress();  // as finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `text` says what is to be known now. total 0: unknown.
  void update(int64_t done, int64_t total, const std::string& text);

  /// Clears the line of a terminal, so that what is printed next stands in its place.
  void finish();

 private:
  std::string line(int64_t done, int64_t total, const std::string& text, double time) const;
  std::ostream& out_;
  Screen screen_;
  std::string label_;
  std::function<double()> now_;
  bool started_ = false, drawn_ = false;
  int64_t first_done_ = 0;
  double first_time_ = 0, next_ = 0, pause_ = 0;
};

}  // namespace headlab
