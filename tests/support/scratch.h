#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace headlab {

/// An empty folder of a test's own, removed at its end: `Scratch scratch; auto file = scratch / "a.json";`
struct Scratch {
  Scratch() {
    auto pattern = (std::filesystem::temp_directory_path() / "headlab-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  std::filesystem::path path;
};

}  // namespace headlab
