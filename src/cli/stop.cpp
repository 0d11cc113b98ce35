#include "src/cli/stop.h"

#include <csignal>
#include <cstdlib>

namespace headlab {
namespace {

std::atomic<bool> stop_asked{false};

void ask_to_stop(int signal) {
  if (stop_asked.exchange(true)) std::_Exit(128 + signal);
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  return stop_asked;
}

}  // namespace headlab
