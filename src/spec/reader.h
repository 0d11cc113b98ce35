#pragma once

#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "src/spec/document.h"
#include "src/spec/mistakes.h"

namespace headlab {

/// Fills `options` from the document through its description and returns every mistake, in the order of their places.
///
/// Keys that the document leaves out keep their defaults, and these are checked too (required fields, rules). Unknown
/// and repeated keys stand at the key, wrong values at the value, broken rules at the value of the field they name or,
/// where that is defaulted, at the innermost object that is written. The rules of a struct are asked only when each of
/// its own values could be read, so that they see nothing out of range. At the top, keys that begin with "$schema" are
/// accepted.
///
/// An item of a list whose items start with values (per_layer) keeps what it does not write; a choice there that is
/// named as it is keeps its options too.
///
/// A choice is the name of an entry, whose options then have that entry's defaults, or an object with its "type"; a
/// keyed choice (stages) is {"prune": {...}} or "prune".
std::vector<Mistake> read(const Document& document, Options& options);

/// The same, but throws SpecErrors when there is a mistake.
void read_or_throw(const Document& document, Options& options);

}  // namespace headlab
