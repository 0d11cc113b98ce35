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
  if (failed > 0)
    throw Error("run: " + std::to_string(failed) + " of " + std::to_string(jobs) +
                " processes ended before their runs were done; the same command goes on");
}

int threads_of_each(int threads, int jobs) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / jobs);
}

void add_jobs(CLI::App& command, int& jobs) {
  command
      .add_option("--jobs", jobs,
                  "runs of a sweep or of arms and seeds side by side, in as many processes that share the cores")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

void side_by_side(const std::string& spec, std::size_t runs, int jobs, const std::vector<std::string>& set, bool quiet,
                  RunFlags& flags) {
  if (jobs == 1) return;
  flags.threads = threads_of_each(flags.threads, jobs);
  const int processes = std::min<int>(jobs, static_cast<int>(runs));
  if (processes == 1) return;
  std::vector<std::string> arguments{
      spec, "--out", flags.out.string(), "--threads", std::to_string(flags.threads), quiet ? "--quiet" : "--brief"};
  if (flags.device) arguments.insert(arguments.end(), {"--device", *flags.device});
  for (const auto& one : set) arguments.insert(arguments.end(), {"--set", one});
  if (flags.fresh) arguments.push_back("--fresh");
  run_side_by_side(arguments, processes);
  flags.fresh = false;  // they began again; now their results are put together
}

}  // namespace headlab
