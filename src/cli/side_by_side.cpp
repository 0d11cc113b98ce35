#include "src/cli/side_by_side.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "modules/base/error.h"

namespace headlab {
namespace {

pid_t start(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t process = -1;
  const int wrong = ::posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
  if (wrong != 0) throw Error(std::string("run: no further process could be started: ") + std::strerror(wrong));
  return process;
}

int end_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void run_side_by_side(const std::vector<std::string>& arguments, int jobs) {
  std::vector<pid_t> processes;
  for (int i = 1; i <= jobs; ++i) {
    std::vector<std::string> command{"headlab", "run"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--part", std::to_string(i) + "/" + std::to_string(jobs)});
    processes.push_back(start(std::move(command)));
  }
  int failed = 0;
  for (const auto process : processes) {
    const int code = end_of(process);
    failed += code != 0 && code != 3;  // 3: ran, and a claim does not hold
  }
  if (failed > 0) throw Error("run: " + std::to_string(failed) + " of " + std::to_string(jobs) + " processes ended before their runs were done; the same command goes on");
}

int threads_of_each(int threads, int jobs) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / jobs);
}

}  // namespace headlab
