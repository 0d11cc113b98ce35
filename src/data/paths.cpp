#include "src/data/paths.h"

#include <cstdlib>
#include <filesystem>

#include "modules/base/error.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

}  // namespace

std::string resolve_data_path(const std::string& name, const std::string& spec_folder) {
  if (name.empty()) throw FileError("expected the name of a file, got \"\"");
  const fs::path path(name);
  if (path.is_absolute()) {
    if (is_file(path)) return name;
    throw FileError("no such file: " + name);
  }
  const fs::path beside = fs::path(spec_folder) / path;
  if (is_file(beside)) return beside.string();
  const char* root = std::getenv("HEADLAB_DATA");
  const bool has_root = root && *root;
  if (has_root && is_file(fs::path(root) / path)) return (fs::path(root) / path).string();
  std::string folder = spec_folder.empty() ? "." : spec_folder;
  if (folder.back() != '/') folder += '/';
  throw FileError("no such file: " + name + " (looked in " + folder + " and in HEADLAB_DATA" +
                  (has_root ? ")" : ", which is not set)"));
}

}  // namespace headlab
