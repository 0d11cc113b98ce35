#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/shapes.h"

namespace headlab {

struct ParafacOptions {
  int64_t rank = 1, iterations = 500;
  double tolerance = 1e-6;  // stops where the error falls by less in an iteration
  int64_t starts = 5;       // the last from separate slices, the others from normal numbers; the best counts
};

/// T_h ~ sum_r a_r m_hr c_r^T, with columns of m of mean square 1 and a_r, c_r of equal norm.
struct Parafac {
  Tensor left_DR, mix_HR, right_ER;
  double error = 0;           // |T - its sum| / |T|, Frobenius norms of all slices
  double separate_error = 0;  // where each component is of one slice: the best `rank` singular triplets of all slices
  int64_t iterations = 0;     // of the start that counts
};

/// A tensor [H, D, E] of slices T_h = left_h right_h^T (left_HDK, right_HEK, in double) as a sum of `rank` components
/// (canonical polyadic decomposition, PARAFAC) by alternating least squares: each factor in turn is the best there is,
/// given the others. From separate slices the error can but fall, so it is at most `separate_error`; a rank of H K or
/// more is exact.
Parafac parafac(const Tensor& left_HDK, const Tensor& right_HEK, const ParafacOptions& options,
                at::Generator generator);

}  // namespace headlab
