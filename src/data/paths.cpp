#include "src/data/paths.h"

#include <cstdlib>
#include <filesystem>

#include "modules/base/error.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path, bool folder) {
  std::error_code ignored;
  return fs::exists(path, ignored) && fs::is_directory(path, ignored) == folder;
}

std::string resolve(const std::string& name, const std::string& spec_folder, bool folder) {
  const std::string kind = folder ? "folder" : "file";
  if (name.empty()) throw FileError("expected the name of a " + kind + ", got \"\"");
  const fs::path path(name);
  if (path.is_absolute()) {
    if (is_there(path, folder)) return name;
    throw FileError("no such " + kind + ": " + name);
  }
  const fs::path beside = fs::path(spec_folder) / path;
  if (is_there(beside, folder)) return beside.string();
  const char* root = std::getenv("HEADLAB_DATA");
  const bool has_root = root && *root;
  if (has_root && is_there(fs::path(root) / path, folder)) return (fs::path(root) / path).string();
  std::string looked = spec_folder.empty() ? "." : spec_folder;
  if (looked.back() != '/') looked += '/';
  throw FileError("no such " + kind + ": " + name + " (looked in " + looked + " and in HEADLAB_DATA" +
                  (has_root ? ")" : ", which is not set)"));
}

}  // namespace

std::string resolve_data_path(const std::string& name, const std::string& spec_folder) {
  return resolve(name, spec_folder, false);
}

std::string resolve_data_folder(const std::string& name, const std::string& spec_folder) {
  return resolve(name, spec_folder, true);
}

}  // namespace headlab
