#include "tests/support/places.h"

#include <cstdlib>
#include <filesystem>

namespace headlab::test {

std::string in_source(const std::string& path) { return std::string(HEADLAB_SOURCE_DIR "/") + path; }

std::string program_file() { return HEADLAB_PROGRAM; }

std::string python() {
  if (const char* named = std::getenv("HEADLAB_PYTHON")) return named;
  const auto own = in_source(".deps/venv/bin/python");
  return std::filesystem::exists(own) ? own : "";
}

}  // namespace headlab::test
