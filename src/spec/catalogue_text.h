#pragma once

#include <string>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// What `headlab list [slot[.entry]] [--full]` prints.
///
///     ""               each slot with what it does and the names of its entries
///     "gate"           its entries, a line each: name, what it is, paper (arXiv number)
///     "gate.route"     that entry
///
/// With `full`, each entry is followed by its options: what they take, default, meaning. Throws UsageError for a slot
/// or entry that does not exist.
std::string catalogue_text(const std::vector<const Catalogue*>& slots, const std::string& what, bool full);

/// The options of one struct as a table, each line indented: name, what it takes, default, meaning. Options within
/// options have dotted names; those of a choice are listed with its own slot.
std::string options_text(const Options& options);

}  // namespace headlab
