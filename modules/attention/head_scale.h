#pragma once

#include "modules/tensor/forward.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// What a pass multiplies the heads of one mixer by: the part of Forward::scale that is of `site`, for `heads`
/// (original numbers, of `original_heads`), [H] or for each row [B,H]; undefined: nothing. Throws ShapeError where the
/// scale lacks the layer or a head.
Tensor head_scale(const Forward& run, Site site, const std::vector<int64_t>& heads, int64_t original_heads);

}  // namespace headlab
