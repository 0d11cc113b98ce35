#include "tests/support/program.h"
#include "tests/support/places.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace headlab::test {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Finished run_program(const std::vector<std::string>& arguments, double kill_after, const std::string& input) {
  Running program(headlab_command(arguments), input);
  if (kill_after > 0 && !wait_until([&] { return program.ended(); }, kill_after)) program.send(SIGKILL);
  return program.wait();
}

Running::Running(const std::vector<std::string>& command, const std::string& input,
                 const std::function<void()>& before) {
  auto name = (std::filesystem::temp_directory_path() / "headlab-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder could be made");
  folder_ = name;
  in_ = folder_ + "/in";
  out_ = folder_ + "/out";
  err_ = folder_ + "/err";
  std::ofstream(in_, std::ios::binary) << input;
  std::vector<char*> argv;
  for (const auto& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (!before) {  // fork would copy the page tables of a test program that is large under sanitizers
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, in_.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int wrong = posix_spawnp(&process_, argv[0], &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (wrong != 0) throw std::runtime_error("can't start " + command.front());
    return;
  }
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("fork failed");
  if (process_ > 0) return;
  dup2(open(in_.c_str(), O_RDONLY), 0);
  dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  before();
  execvp(argv[0], argv.data());
  _exit(127);
}

Running::~Running() {
  if (!ended()) {
    kill(process_, SIGKILL);
    waitpid(process_, &status_, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool Running::ended() {
  if (!ended_) ended_ = waitpid(process_, &status_, WNOHANG) == process_;
  return ended_;
}

void Running::send(int signal) const { kill(process_, signal); }

Finished Running::wait() {
  if (!ended_) waitpid(process_, &status_, 0);
  ended_ = true;
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_), slurp(out_), slurp(err_)};
}

std::vector<std::string> headlab_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{test::program_file()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool wait_until(const std::function<bool()>& condition, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Folder::Folder() {
  auto name = (std::filesystem::temp_directory_path() / "headlab-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder could be made");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return path_ / name;
}

std::filesystem::path only_run(const std::filesystem::path& out, const std::string& name) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::directory_iterator(out / name)) {
    if (!found.empty()) throw std::runtime_error("more than one run in " + (out / name).string());
    found = entry.path();
  }
  return found;
}

}  // namespace headlab::test
