#pragma once

#include <string>

/// Where tests find what they need. Known to one source alone, so that all others compile the same in every checkout.
namespace headlab::test {

/// A file or folder of the checkout that the tests were built from: in_source("tests/golden/metrics.json").
std::string in_source(const std::string& path);

/// The program headlab that was built with the tests.
std::string program_file();

/// The Python with torch that exports are compared with: HEADLAB_PYTHON, or that of .deps/venv; "": there is none.
std::string python();

}  // namespace headlab::test
