#pragma once

#include "modules/tensor/torch.h"

namespace headlab {

/// Rows [n K, D] of a matrix (or a bias [n K]), K for each of n units: x W_u becomes x W_u M, M [K,K]. Nothing where
/// either is undefined. In double, so that only the result is rounded.
inline void absorb_map(torch::Tensor rows, const torch::Tensor& map_KK) {
  if (!rows.defined() || !map_KK.defined() || rows.size(0) == 0) return;
  const auto units = rows.to(torch::kFloat64).view({-1, map_KK.size(0), rows.dim() == 2 ? rows.size(1) : 1});
  rows.copy_(torch::matmul(map_KK.to(torch::kFloat64).t(), units).view_as(rows));
}

}  // namespace headlab
