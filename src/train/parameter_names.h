#pragma once

#include <string>
#include <vector>

#include "src/train/optimizer.h"

namespace headlab {

/// Whether `pattern` chooses the parameter `name` ("decoder.layers.0.self_attention.project.weight").
///
/// A pattern is one or more parts with dots between them, and chooses a name that has those parts side by side,
/// anywhere. A part of the pattern fits a part of the name that is the same, or that ends in it after an underscore:
/// "bias" fits "bias" and "query_bias", "norm" fits "norm" and "self_attention_norm". With a `*` it must fit the whole
/// part, the `*` standing for any letters: "query_*". "*" alone chooses every name.
bool name_matches(const std::string& pattern, const std::string& name);

/// The parameters that one of `patterns` chooses (none given: all), without those that one of `except` does.
/// Throws UsageError, with names that are near, for a pattern that no parameter has, and where nothing is left. The
/// words "bias" and "norm" may always stand in `except`, since they say a kind that a model may lack. `where` begins
/// the messages: "penalties[0]".
NamedParameters select_parameters(const NamedParameters& parameters, const std::vector<std::string>& patterns,
                                  const std::vector<std::string>& except, const std::string& where);

}  // namespace headlab
