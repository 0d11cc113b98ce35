#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
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

/// A program that runs beside the test; its end is waited for, at the latest by the destructor, which kills it.
class Running {
 public:
  /// `command`: the file to execute and its arguments. `before` is called in the new process just before: limits,
  /// rights.
  explicit Running(const std::vector<std::string>& command, const std::string& input = "",
                   const std::function<void()>& before = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  pid_t process() const { return process_; }
  bool ended();  // whether it has come to its end by itself
  void send(int signal) const;
  Finished wait();

 private:
  std::string in_, out_, err_;  // files
  std::string folder_;
  pid_t process_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

/// headlab with these arguments, to be given to Running.
std::vector<std::string> headlab_command(const std::vector<std::string>& arguments);

/// Waits until `condition` holds; false where it does not within `seconds`.
bool wait_until(const std::function<bool()>& condition, double seconds = 60);

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
