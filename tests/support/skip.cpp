#include "tests/support/skip.h"

#include <torch/cuda.h>

namespace headlab::test {

std::string running_test;
std::vector<std::pair<std::string, std::string>> skipped_tests;

bool skipped(bool condition, const std::string& reason) {
  if (condition) skipped_tests.emplace_back(running_test, reason);
  return condition;
}

bool has_gpu() { return torch::cuda::is_available(); }

}  // namespace headlab::test
