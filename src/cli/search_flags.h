#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/decode/search.h"

namespace headlab {

/// --beam, --length-penalty, --n-best, --temperature, --top-k, --top-p, --seed, --max-length and --prefix, with the
/// defaults that `search` has.
void add_search_flags(CLI::App& command, SearchOptions& search);

/// What the flags of `command` say, where they fit each other; throws UsageError with the first that does not.
void check_search(const std::string& command, const SearchOptions& search);

}  // namespace headlab
