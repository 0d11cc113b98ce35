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
/// Why 1/sqrt(K): with independent entries of q (mean m_q, variance v_q) and k (m_k, v_k) a product has the variance
///   K ((v_q + m_q^2)(v_k + m_k^2) - m_q^2 m_k^2),  which is K sigma^4 for means of 0 and variances sigma^2,
/// and 1/sqrt(K) takes the K away.
class DotProduct : public Score {
 public:
  DotProduct(const DotProductOptions& options, Shape shape);
  Tensor score(const Tensor& q_BHTK, const Tensor& k_BHSK, const std::vector<int64_t>& heads) override;
  std::optional<double> factor() const override { return factor_; }
  int64_t flops(int64_t, int64_t, int64_t, int64_t pairs) const override { return 2 * pairs * width_; }

 private:
  double factor_;
  int64_t width_;  // K
};

}  // namespace headlab
