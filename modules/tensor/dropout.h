#pragma once

#include <string>
#include <vector>

#include "modules/tensor/shapes.h"

namespace headlab {

/// Kinds of dropout: which numbers of x_BTD fall together. "element": each by itself; "token": a token's whole vector;
/// "channel": one of the D channels in the whole text, the same draw for all tokens (1512.05287).
const std::vector<std::string>& dropout_kinds();

/// Inverted dropout: x * mask / (1 - p), mask 0 with probability p, so that E[y] = x; x itself where p is 0 or
/// `training` is false. x_BTD -> x_BTD. Throws std::logic_error for an unknown kind (options know theirs).
Tensor drop(const Tensor& x_BTD, double p, bool training, const std::string& kind);

}  // namespace headlab
