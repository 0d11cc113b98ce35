#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// The point of the simplex nearest to the scores, so that small weights are exactly 0          (1602.02068, eq. 2; for
/// heads 1911.03898)
///   w_s = max(s_s - tau, 0), with tau such that they add up to 1:
///   k = max{k : 1 + k s_(k) > sum_{j <= k} s_(j)} of the scores in falling order, tau = (sum_{j <= k} s_(j) - 1) / k
/// The gradient of a row is that of its support: g - mean of g over it; 0 elsewhere. A hidden key (-inf) has weight 0,
/// and a row of hidden keys zeros. LibTorch's fused kernel can't do it.
class Sparsemax : public Normalise {
 public:
  explicit Sparsemax(const NoOptions&) {}
  Tensor weights(const Tensor& scores_BHTS) override;
};

}  // namespace headlab
