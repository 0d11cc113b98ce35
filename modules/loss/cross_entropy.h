#pragma once

#include "modules/tensor/shapes.h"

namespace headlab {

/// A loss as a sum over tokens and what it is a sum over, so that parts of a batch add up.
struct TokenLoss {
  Tensor sum;      // with gradient: the smoothed loss
  Tensor nll_sum;  // without gradient or smoothing: for perplexity
  int64_t tokens = 0;
};

/// sum_n sum_v y_nv (-log softmax(logits_n)_v),  y = (1 - epsilon) onehot(target) + epsilon / V          (1512.00567,
/// section 7) logits_NV, target_N (long); no padding among the rows. An empty batch gives 0. One pass forward and one
/// backward over the logits; the backward can run once.
TokenLoss smoothed_cross_entropy(const Tensor& logits_NV, const Tensor& target_N, double epsilon);

}  // namespace headlab
