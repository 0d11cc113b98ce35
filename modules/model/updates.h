#pragma once

#include "modules/model/model.h"
#include "modules/tensor/updated.h"

namespace headlab {

/// Adds one pass's Forward::stats to those of the step so far.
void add_stats(std::map<std::string, Tensor>& sums, const std::map<std::string, Tensor>& more);

/// To be called once after each optimiser step, with the sums over its passes: each Updated module below a mixer learns
/// from them.
void update_modules(Model& model, const std::map<std::string, Tensor>& stats);

}  // namespace headlab
