// The loop for machines without libFuzzer: fuzz TARGET RUNS SEED [FOLDER of seeds...].
// The same arguments give the same inputs. An input that breaks a promise is left in found-<target>.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/fuzz/targets.h"

namespace {

std::string input, found_name;

/// Nothing but what a signal handler may call.
void leave_input(int signal) {
  if (std::FILE* file = std::fopen(found_name.c_str(), "wb")) {
    std::fwrite(input.data(), 1, input.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s\n", found_name.c_str());
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace headlab;
  if (argc < 4) {
    std::fprintf(stderr, "fuzz TARGET RUNS SEED [FOLDER...]\n");
    return 2;
  }
  const auto& target = fuzz::target(argv[1]);
  auto pool = target.seeds();
  for (int i = 4; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      pool.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  found_name = std::string("found-") + target.name;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, leave_input);
  const auto runs = std::strtoull(argv[2], nullptr, 10);
  Random random(std::strtoull(argv[3], nullptr, 10));
  for (unsigned long long run = 0; run < runs; ++run) {
    input = pool[static_cast<std::size_t>(random.below(pool.size()))];
    for (auto edits = random.below(5); edits > 0; --edits) input = target.mutate(input, random);
    target.one(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    // Some of what was tried is gone on from; without measuring coverage, any is as good as another.
    if (run % 64 == 0 && input.size() < 4096) {
      if (pool.size() < 4096)
        pool.push_back(input);
      else
        pool[static_cast<std::size_t>(random.below(pool.size()))] = input;
    }
  }
  std::printf("%s: %llu inputs, nothing found\n", target.name, runs);
  return 0;
}
