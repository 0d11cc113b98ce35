#pragma once

#include "modules/attention/slots.h"

namespace headlab {

struct DotProductOptions : Described<DotProductOptions> {
  std::optional<double> scale;
  void describe(Fields& fields) override {
    fields.add("scale", scale, "factor of q k^T").means("absent: 1/sqrt(head width); 1: none");
  }
};

/// s = scale * q k^T          (1706.03762, section 3.2.1)
class DotProduct : public Score {
 public:
  DotProduct(const DotProductOptions& options, Shape shape);
  Tensor score(const Tensor& q_BHTK, const Tensor& k_BHSK) override;
  std::optional<double> factor() const override { return factor_; }

 private:
  double factor_;
};

}  // namespace headlab
