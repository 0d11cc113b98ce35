#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "modules/base/fields.h"

namespace headlab {

/// Every field with its value, in the order of the description: what was run, in full. Absent optional values are null;
/// a choice is an object with its "type", a keyed one {"prune": {...}}. Reading a dump gives options with the same
/// dump. Throws std::logic_error for a number that JSON cannot hold (infinite, not a number).
nlohmann::ordered_json dump(const Options& options);
/// The same of a choice: an object with its "type".
nlohmann::ordered_json dump(const Choice& choice);

/// The same as indented text with a newline at its end.
std::string dump_text(const Options& options);

}  // namespace headlab
