#pragma once

#include <functional>

#include "modules/norm/norm.h"

namespace headlab {

/// Where a sublayer's norm stands: join(x) = ... f(...) ..., with dropout p on f's output before it is added.
struct Residual {
  virtual ~Residual() = default;
  virtual Tensor join(const Tensor& x, Norm& norm, double dropout, bool training,
                      const std::function<Tensor(const Tensor&)>& f) const = 0;
  /// True where the stack's output still needs a norm.
  virtual bool final_norm() const = 0;
};

using Residuals = Registry<Residual>;
const Residuals& residuals();
const Catalogue& residual_catalogue();

}  // namespace headlab
