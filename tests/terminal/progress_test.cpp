#include "src/terminal/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <vector>

#include "src/terminal/format.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

const Screen terminal{true, true, 90}, pipe_screen{false, false, 80};

struct Steps {
  explicit Steps(const Screen& screen) : progress(out, screen, "train", [this] { return time; }) {}
  std::string at(double seconds, int64_t done, int64_t total = 1600, const std::string& text = "loss 1.204") {
    time = seconds;
    out.str("");
    progress.update(done, total, text);
    return out.str();
  }
  double time = 0;
  std::ostringstream out;
  Progress progress;
};

/// Sets an environment variable for a test.
struct Variable {
  Variable(const char* name, const char* value) : name(name) {
    if (auto* before = getenv(name)) old = before;
    setenv(name, value, 1);
  }
  ~Variable() { old ? setenv(name, old->c_str(), 1) : unsetenv(name); }
  const char* name;
  std::optional<std::string> old;
};

}  // namespace

TEST_CASE("on a terminal progress is one line that is written over", "[terminal]") {
  Steps steps(terminal);
  CHECK(steps.at(0, 0) == "\r  train      [....................]     0/1,600  loss 1.204\x1b[K");
  CHECK(steps.at(60, 800) == "\r  train      [##########..........]   800/1,600  loss 1.204  1:00 left\x1b[K");
  CHECK(steps.at(60.05, 801).empty());
  CHECK(steps.at(120, 1600) == "\r  train      [####################] 1,600/1,600  loss 1.204\x1b[K");
  steps.out.str("");
  steps.progress.finish();
  CHECK(steps.out.str() == "\r\x1b[K");
  steps.progress.finish();
  CHECK(steps.out.str() == "\r\x1b[K");
}

TEST_CASE("a progress line never reaches the last column of the terminal", "[terminal]") {
  for (int64_t columns : {1, 10, 30, 47, 60, 200}) {
    Steps steps(Screen{true, false, columns});
    steps.at(0, 0);
    auto line = steps.at(60, 800);
    CAPTURE(columns, line);
    CHECK(text_width(line) - 4 <= columns - 1);  // \r and three of the sequence that clears the rest
  }
}

TEST_CASE("time left is judged by what was done since a resume", "[terminal]") {
  Steps steps(terminal);
  steps.at(0, 1000);
  CHECK_THAT(steps.at(30, 1300), ContainsSubstring("0:30 left"));
}

TEST_CASE("in a pipe progress is whole lines with growing pauses", "[terminal]") {
  Steps steps(pipe_screen);
  std::vector<double> lines;
  for (int second = 0; second <= 300; ++second) {
    auto line = steps.at(second, second, 1000);
    if (line.empty()) continue;
    lines.push_back(second);
    CHECK(line.back() == '\n');
    CHECK(line.find_first_of("\r\x1b[") == std::string::npos);
  }
  CHECK(lines == std::vector<double>{10, 30, 70, 130, 190, 250});
  CHECK(steps.at(400, 500, 1000) == "  train        500/1,000  loss 1.204  6:40 left\n");
}

TEST_CASE("work of unknown length shows its count", "[terminal]") {
  Steps steps(terminal);
  CHECK(steps.at(0, 12000, 0, "") == "\r  train      12,000\x1b[K");
}

TEST_CASE("colours appear only on a terminal and not against NO_COLOR", "[terminal]") {
  CHECK(styled("holds", Style::good, terminal) == "\x1b[32mholds\x1b[0m");
  CHECK(styled("holds", Style::plain, terminal) == "holds");
  CHECK(styled("holds", Style::good, pipe_screen) == "holds");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK_FALSE(Screen::of(ends[1]).interactive);
  CHECK_FALSE(Screen::of(ends[1]).colour);
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return;  // no pseudo-terminals here
  auto* slave = fopen(ptsname(master), "r+");
  if (!slave) return;
  Variable term("TERM", "xterm"), no_color("NO_COLOR", ""), columns("COLUMNS", "");
  CHECK(Screen::of(fileno(slave)).interactive);
  CHECK(Screen::of(fileno(slave)).colour);
  {
    Variable off("NO_COLOR", "1");
    CHECK(Screen::of(fileno(slave)).interactive);
    CHECK_FALSE(Screen::of(fileno(slave)).colour);
  }
  {
    Variable dumb("TERM", "dumb"), wide("COLUMNS", "132");
    CHECK_FALSE(Screen::of(fileno(slave)).interactive);
    CHECK(Screen::of(fileno(slave)).columns == 132);
  }
  fclose(slave);
  close(master);
  close(ends[0]);
  close(ends[1]);
}
