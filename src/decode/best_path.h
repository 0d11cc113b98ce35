#pragma once

#include <vector>

#include "modules/tensor/shapes.h"

namespace headlab {

/// What the most probable path of CTC writes: of each row the most probable id of each frame, equal ones in a row once,
/// then without the blank (modules/loss/ctc.h). log_p_BSV; mask_BS: bool, true: a frame; undefined: all are.
std::vector<std::vector<int64_t>> best_paths(const Tensor& log_p_BSV, const Tensor& mask_BS);

}  // namespace headlab
