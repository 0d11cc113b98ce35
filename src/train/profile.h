#pragma once

#include "modules/model/model.h"
#include "src/data/batches.h"
#include "src/task/task.h"

namespace headlab {

/// What a model takes from data before its training begins: the scales of the residual "admin" (modules/layer/admin.h),
/// from the first batches that a training of this seed will read, without dropout. Nothing is done to a model of
/// another residual, nor to one whose scales have moved from ones: it has been profiled, or trained. Returns whether
/// scales were set.
bool profile_residual(Model& model, const Choice& residual, const Task& task, const BatchOptions& batch, uint64_t seed);

}  // namespace headlab
