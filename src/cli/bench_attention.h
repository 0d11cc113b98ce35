#pragma once

#include "src/cli/command.h"

namespace headlab {

/// `headlab bench attention CASE`: the same work by two ways in one process, in turn (A B A B ...), after their answers
/// have been compared; prints one JSON line.
void add_bench_attention(CLI::App& bench, const std::shared_ptr<std::function<int()>>& chosen);

}  // namespace headlab
