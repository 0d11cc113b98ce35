#pragma once

#include "modules/tensor/torch.h"

namespace headlab {

/// [B,T,n*width] -> [B,n,T,width]: the numbers that one product makes for n heads or groups, side by side.
inline torch::Tensor split_heads(const torch::Tensor& flat, int64_t width) {
  return flat.unflatten(-1, {-1, width}).transpose(1, 2);
}

}  // namespace headlab
