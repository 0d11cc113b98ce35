// The one main of the tests, for Catch2 2.13 and 3. Runs all tests but those tagged [long] unless tests are named on
// the command line or --all is given; with --part 2/3 every third of them, from the second on. Exit code: 0 when every
// test passed, not 0 when one failed or none ran. Tests that leave themselves out (tests/support/skip.h) are listed at
// the end and counted as skipped. Where the environment variable HEADLAB_TEST_COUNTS names a file, "N passed, N failed"
// is written into it. GCC 12 takes std::regex, which Catch2 uses, for uninitialised when it instruments it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/interfaces/catch_interfaces_registry_hub.hpp>
#include <catch2/interfaces/catch_interfaces_testcase.hpp>
#include <catch2/internal/catch_test_case_registry_impl.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "tests/support/skip.h"

namespace {

bool ran_a_test = false, only_listed = true;
std::size_t ended_tests = 0;

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
  void testCaseEnded(const Catch::TestCaseStats&) override { ++ended_tests; }
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
    if (skipped_by_catch(tests) + left_out.size() > 0)
      out << ", " << skipped_by_catch(tests) + left_out.size() << " skipped";
    out << "\n";
  }
};
CATCH_REGISTER_LISTENER(CountTests)

/// Leaves part `part` of `parts` of the tests that would run; how many. (Catch2 3 has shards of its own, 2.13 has not.)
std::size_t choose_part(Catch::Session& session, std::size_t part, std::size_t parts) {
  const auto& config = session.config();
  const auto tests =
      Catch::filterTests(Catch::getRegistryHub().getTestCaseRegistry().getAllTests(), config.testSpec(), config);
  std::string names;
  std::size_t count = 0;
  for (auto i = part - 1; i < tests.size(); i += parts, ++count) {
    if (count > 0) names += ",";
    for (const char c : name_of(tests[i]))
      names += std::strchr("\\,[\"", c) ? std::string("\\") + c : std::string(1, c);
  }
  auto data = session.configData();
  data.testsOrTags = {names};
  session.useConfigData(data);
  return count;
}

}  // namespace

std::vector<std::string> headlab::test::registered_tests() {
  std::vector<std::string> names;
  for (const auto& test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests()) names.push_back(name_of(test));
  return names;
}

int main(int argc, char** argv) {
  bool all = false;
  std::size_t part = 1, parts = 1;
  std::vector<const char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) {
      all = true;
    } else if (std::strcmp(argv[i], "--part") == 0 && i + 1 < argc) {
      if (std::sscanf(argv[++i], "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts) {
        std::cerr << "--part: expected one such as 2/3, got " << argv[i] << "\n";
        return 2;
      }
    } else {
      arguments.push_back(argv[i]);
    }
  }
  Catch::Session session;
  const int wrong = session.applyCommandLine(static_cast<int>(arguments.size()), arguments.data());
  if (wrong != 0) return wrong;
  if (!all && session.configData().testsOrTags.empty()) session.configData().testsOrTags.emplace_back("~[long]");
  const auto chosen = parts > 1 ? choose_part(session, part, parts) : 0;
  const int code = session.run();
  if (code != 0 || only_listed) return code;
  if (parts > 1 && ended_tests != chosen) {
    std::cerr << "part " << part << " of " << parts << ": " << chosen << " tests were meant, " << ended_tests
              << " ran\n";
    return 5;
  }
  return ran_a_test ? 0 : 4;
}
