#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/spec/document.h"

namespace headlab {

/// Sets values of a document from `--set` arguments, each "key.path=value", in their order: "model.encoder.layers=2",
/// "stages[0].train.steps=100", "model.position=rope". The value is read as JSON, or else taken as a string. Keys on
/// the way that the document leaves out are made; an item of a list must exist or be the next one. A choice that was
/// written as a name ("rope") becomes an object when an option of it is set. Returns what was wrong with the arguments
/// themselves; what they set is checked by read(), which reports it as "--set model.d_modl=3: unknown key; ...".
std::vector<Mistake> apply_overrides(Document& document, const std::vector<std::string>& arguments);

/// Sets one value. `key` is where the path was written: the place of the keys that are made. Returns what was wrong,
/// and then leaves the document as it was.
std::optional<Mistake> set_value(Document& document, const std::string& path, const Place& key, Node value);

}  // namespace headlab
