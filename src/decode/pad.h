#pragma once

#include <utility>
#include <vector>

#include "modules/tensor/shapes.h"

namespace headlab {

/// Ids padded on the right, [B, longest] (long), and where the ids are (bool; undefined where nothing was padded).
std::pair<Tensor, Tensor> pad_right(const std::vector<std::vector<int64_t>>& rows, int64_t pad, torch::Device device);

}  // namespace headlab
