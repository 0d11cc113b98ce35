#pragma once

#include "modules/tensor/shapes.h"

namespace headlab {

/// windowed_attention (weigh.h) on a CPU: LibTorch's fused kernel for a few blocks of queries at a time, over views of
/// the keys and values that they see. Beside results and gradients it keeps one number a query, so that it needs no
/// more memory than the fused kernel over the whole text. q_BHTK, k_BHTK, v_BHTK of one type on the CPU, values as wide
/// as keys; there_T (bool; undefined: all): tokens that are keys, for B = 1 -> z_BHTK. Gradients of gradients are not
/// there.
Tensor windowed_on_cpu(const Tensor& q_BHTK, const Tensor& k_BHTK, const Tensor& v_BHTK, const Tensor& there_T,
                       bool causal, int64_t window, int64_t step, double factor);

}  // namespace headlab
