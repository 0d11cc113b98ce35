#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

/// Runs the program headlab as a user does.
namespace headlab::test {

struct Finished {
  int code = -1;  // exit code, or -signal
  std::string out, err;
};

/// Runs the program to its end. `kill_after`: seconds until SIGKILL; 0: never.
Finished run_program(const std::vector<std::string>& arguments, double kill_after = 0, const std::string& input = "");

/// A new empty folder that goes away with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// The only run folder below `out`/<name>.
std::filesystem::path only_run(const std::filesystem::path& out, const std::string& name);

}  // namespace headlab::test
