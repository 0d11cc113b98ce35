#pragma once

#include "modules/model/model.h"
#include "src/heads/head_set.h"

namespace headlab {

/// A scale of ones with zeros at `masked` (heads that must be there).
std::map<Stack, Tensor> mask_scale(const Model& model, const HeadSet& masked);

/// The values of a scale (or its gradient) for the heads that are there; [L,H] each.
HeadScores scores_of(const std::map<Stack, Tensor>& values, const HeadTable& there, const std::string& method);

}  // namespace headlab
