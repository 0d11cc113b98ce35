#include "src/terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace headlab {

Screen Screen::of(int file_descriptor) {
  auto environment = [](const char* name) {
    auto* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  Screen screen;
  screen.interactive = isatty(file_descriptor) && environment("TERM") != "dumb";
  screen.colour = screen.interactive && environment("NO_COLOR").empty();
  winsize size{};
  if (screen.interactive && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.columns = size.ws_col;
  }
  auto columns = std::strtol(environment("COLUMNS").c_str(), nullptr, 10);
  if (columns > 0) screen.columns = columns;
  return screen;
}

std::string styled(const std::string& text, Style style, const Screen& screen) {
  constexpr const char* codes[] = {"", "1", "2", "32", "31"};  // in the order of Style
  if (!screen.colour || style == Style::plain || text.empty()) return text;
  return std::string("\x1b[") + codes[static_cast<int>(style)] + "m" + text + "\x1b[0m";
}

}  // namespace headlab
