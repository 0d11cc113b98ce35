#pragma once

#include <functional>

#include "modules/norm/norm.h"
#include "modules/tensor/dropout.h"

namespace headlab {

/// What falls out of a sublayer's output before it is added to x.
struct SublayerDropout {
  double p = 0;
  std::string kind = "element";
};

/// The norms of one sublayer.
struct SublayerNorms {
  std::shared_ptr<Norm> norm;
  std::shared_ptr<Norm> after;  // the second one, where has_second_norm()
};

/// Where a sublayer's norms stand: join(x) = ... f(...) ..., with dropout on what is added to x.
struct Residual {
  virtual ~Residual() = default;
  virtual Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
                      const std::function<Tensor(const Tensor&)>& f) const = 0;
  /// True where the stack's output still needs a norm.
  virtual bool final_norm() const = 0;
  virtual bool has_second_norm() const { return false; }
};

using Residuals = Registry<Residual>;
const Residuals& residuals();
const Catalogue& residual_catalogue();

}  // namespace headlab
