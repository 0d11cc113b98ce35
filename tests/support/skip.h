#pragma once

#include <string>
#include <utility>
#include <vector>

/// Tests that can't run on every machine leave themselves out, by name, and the end of the run lists them.
namespace headlab::test {

/// `if (skipped(!has_gpu(), "no GPU")) return;` as a test's first line. Where `condition` is true, the running test is
/// listed as skipped for that reason and counted as neither passed nor failed (tests/main.cpp). Catch2 2.13 has no
/// SKIP.
bool skipped(bool condition, const std::string& reason);

/// Whether LibTorch can use a CUDA device here. Tests that need one are tagged [cuda].
bool has_gpu();

/// The names of all test cases of this program, as Catch2 registered them.
std::vector<std::string> registered_tests();

/// The running test case, set by tests/main.cpp; what was skipped, with the reasons.
extern std::string running_test;
extern std::vector<std::pair<std::string, std::string>> skipped_tests;

}  // namespace headlab::test
