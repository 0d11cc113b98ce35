#pragma once

#include <stdexcept>
#include <string>

namespace headlab {

/// A mistake that its user can mend: the message says where, what was expected, what was got and the way out.
/// Libraries throw it and never print or exit; the program prints the message and exits with `exit_code`.
struct Error : std::runtime_error {
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code(exit_code) {}
  int exit_code;  // 1: the work failed; 2: bad usage or a bad spec; 3: an expectation did not hold
};

/// A wrong command line or spec (exit code 2); found before anything is written.
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(message, 2) {}
};

/// Tensors whose shapes do not fit each other or the options.
struct ShapeError : Error {
  using Error::Error;
};

/// A file that is missing, truncated, foreign or cannot be written.
struct FileError : Error {
  using Error::Error;
};

}  // namespace headlab
