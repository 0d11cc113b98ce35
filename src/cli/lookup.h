#pragma once

#include <string>
#include <vector>

namespace headlab {

/// What `headlab list` can be asked for: "gate", "gate.hard_concrete" and so on.
std::vector<std::string> names_that_list_knows();

}  // namespace headlab
