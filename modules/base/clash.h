#pragma once

#include <string>

#include "modules/base/fields.h"

namespace headlab {

/// Whether a clash speaks of this entry, "gate.windows": by its name, or as one of a slot ("gate.*").
bool speaks_of(const Clash& clash, const std::string& entry);

}  // namespace headlab
