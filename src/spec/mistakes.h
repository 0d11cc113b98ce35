#pragma once

#include <string>
#include <vector>

#include "modules/base/error.h"
#include "src/spec/document.h"

namespace headlab {

/// Every mistake of a spec, in the order of their places, one a line, and `4 mistakes, nothing was run`.
/// The text shows the first 50; `mistakes` has all.
struct SpecErrors : UsageError {
  explicit SpecErrors(std::vector<Mistake> mistakes);
  std::vector<Mistake> mistakes;
};

/// In the order of their places, each once: the variants of a sweep share most of their text.
std::vector<Mistake> sorted(std::vector<Mistake> mistakes);

/// Throws SpecErrors unless there are none.
void throw_mistakes(std::vector<Mistake> mistakes);

}  // namespace headlab
