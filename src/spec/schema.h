#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "modules/base/fields.h"

namespace headlab {

/// The JSON Schema (draft 2020-12) of what read() accepts for these options: types, meanings, defaults, ranges,
/// choices. Editors complete and check specs with it; rules between fields are beyond a schema and are told by `headlab
/// check`.
nlohmann::ordered_json schema(const Options& options, const std::string& title);

}  // namespace headlab
