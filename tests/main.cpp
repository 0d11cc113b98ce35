// The one main of the tests, for Catch2 2.13 and 3. Runs all tests but those tagged [long] unless tests are named on the
// command line or --all is given. Exit code: 0 when every test passed, not 0 when one failed or none ran.
// Tests that leave themselves out (tests/support/skip.h) are listed at the end and counted as skipped.
// Where the environment variable HEADLAB_TEST_COUNTS names a file, "N passed, N failed" is written into it.
// GCC 12 takes std::regex, which Catch2 uses, for uninitialised when it instruments it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/interfaces/catch_interfaces_registry_hub.hpp>
#include <catch2/interfaces/catch_interfaces_testcase.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "tests/support/skip.h"

namespace {

bool ran_a_test = false, only_listed = true;

template <class Counts>
std::size_t skipped_by_catch(const Counts& counts) {
  if constexpr (requires { counts.skipped; }) return counts.skipped;  // Catch2 3.3 and newer
  return 0;
}

template <class Test>
std::string name_of(const Test& test) {
  if constexpr (requires { test.getTestCaseInfo().name; }) {
    return test.getTestCaseInfo().name;  // Catch2 3
  } else {
    return test.name;
  }
}

/// Called at the end of the run, also when a signal ends it.
struct CountTests : Listener {
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override { headlab::test::running_test = info.name; }
  void testRunEnded(const Catch::TestRunStats& stats) override {
    const auto& tests = stats.totals.testCases;
    const auto& left_out = headlab::test::skipped_tests;
    only_listed = false;
    const auto passed = tests.passed + tests.failedButOk - left_out.size();
    ran_a_test = passed + tests.failed > 0;
    for (const auto& [name, reason] : left_out) std::cout << "skipped (" << reason << "): " << name << "\n";
    const char* file = std::getenv("HEADLAB_TEST_COUNTS");
    if (!file) return;
    std::ofstream out(file);
    out << passed << " passed, " << tests.failed << " failed";
    if (skipped_by_catch(tests) + left_out.size() > 0) out << ", " << skipped_by_catch(tests) + left_out.size() << " skipped";
    out << "\n";
  }
};
CATCH_REGISTER_LISTENER(CountTests)

}  // namespace

std::vector<std::string> headlab::test::registered_tests() {
  std::vector<std::string> names;
  for (const auto& test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests()) names.push_back(name_of(test));
  return names;
}

int main(int argc, char** argv) {
  bool all = false;
  std::vector<const char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) {
      all = true;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  Catch::Session session;
  const int wrong = session.applyCommandLine(static_cast<int>(arguments.size()), arguments.data());
  if (wrong != 0) return wrong;
  if (!all && session.configData().testsOrTags.empty()) session.configData().testsOrTags.emplace_back("~[long]");
  const int code = session.run();
  if (code != 0 || only_listed) return code;
  return ran_a_test ? 0 : 4;
}
