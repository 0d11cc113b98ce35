#include "src/terminal/progress.h"

#include <algorithm>
#include <chrono>
#include <ostream>

#include "src/terminal/format.h"

namespace headlab {
namespace {

constexpr double redraw_pause = 0.1;                    // seconds
constexpr double first_pause = 10, longest_pause = 60;  // between lines in a pipe, seconds
constexpr int64_t widest_bar = 20, narrowest_bar = 5;   // columns between its brackets

double machine_time() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string bar(double share, int64_t columns) {
  auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns));
  return "[" + std::string(full, '#') + std::string(static_cast<std::size_t>(columns) - full, '.') + "] ";
}

}  // namespace

Progress::Progress(std::ostream& out, const Screen& screen, std::string label, std::function<double()> now)
    : out_(out), screen_(screen), label_(std::move(label)), now_(now ? std::move(now) : machine_time) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, int64_t total, const std::string& text) {
  auto time = now_();
  if (!started_) {
    started_ = true;
    first_done_ = done;
    first_time_ = time;
    pause_ = screen_.interactive ? redraw_pause : first_pause;
    next_ = screen_.interactive ? time : time + pause_;
  }
  if (time < next_) return;
  auto now = line(done, total, text, time);
  if (screen_.interactive) {
    out_ << '\r' << now << "\x1b[K" << std::flush;
    drawn_ = true;
  } else {
    out_ << now << std::endl;
    pause_ = std::min(2 * pause_, longest_pause);
  }
  next_ = time + pause_;
}

void Progress::finish() {
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

std::string Progress::line(int64_t done, int64_t total, const std::string& text, double time) const {
  auto count = total > 0 ? padded_left(with_commas(done), text_width(with_commas(total))) + "/" + with_commas(total)
                         : with_commas(done);
  auto rest = count + (text.empty() ? "" : "  " + text);
  if (total > done && done > first_done_) {
    auto pace = (time - first_time_) / static_cast<double>(done - first_done_);
    rest += "  " + clock_text(pace * static_cast<double>(total - done)) + " left";
  }
  if (!screen_.interactive) return labelled(label_, rest);
  auto room = screen_.columns - 1;  // writing into the last column would make some terminals go to the next line
  auto bar_room = std::min(widest_bar, room - text_width(labelled(label_, rest)) - 3);
  if (total > 0 && bar_room >= narrowest_bar) {
    rest = bar(static_cast<double>(done) / static_cast<double>(total), bar_room) + rest;
  }
  return shortened(labelled(label_, rest), room);
}

}  // namespace headlab
