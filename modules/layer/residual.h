#pragma once

#include <functional>

#include "modules/norm/norm.h"
#include "modules/tensor/dropout.h"
#include "modules/tensor/forward.h"

namespace headlab {

/// What falls out of a sublayer's output before it is added to x.
struct SublayerDropout {
  double p = 0;
  std::string kind = "element";
};

/// The norms of one sublayer, and what else its residual sum needs.
struct SublayerNorms {
  std::shared_ptr<Norm> norm;
  std::shared_ptr<Norm> after;  // the second one, where has_second_norm()
  Tensor scale_D;               // of x in the sum, where has_scale()
  std::string chain;            // which residual stream it is part of, "enc.self": of the figures that a profile takes
};

/// Where a sublayer's norms stand: join(x) = ... f(...) ..., with dropout on what is added to x.
struct Residual {
  virtual ~Residual() = default;
  virtual Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
                      const std::function<Tensor(const Tensor&)>& f, Forward& run) const = 0;
  /// True where the stack's output still needs a norm.
  virtual bool final_norm() const = 0;
  virtual bool has_second_norm() const { return false; }
  /// Whether x is multiplied by a vector that learns, which starts at ones.
  virtual bool has_scale() const { return false; }
};

using Residuals = Registry<Residual>;
const Residuals& residuals();
const Catalogue& residual_catalogue();

}  // namespace headlab
