#include "modules/attention/weigh/dot_product.h"

#include <cmath>

#include "modules/tensor/torch.h"

namespace headlab {

DotProduct::DotProduct(const DotProductOptions& options, Shape shape)
    : factor_(options.scale.value_or(1.0 / std::sqrt(static_cast<double>(shape->head_width)))),
      width_(shape->head_width) {}

Tensor DotProduct::score(const Tensor& q_BHTK, const Tensor& k_BHSK, const std::vector<int64_t>&) {
  return torch::matmul(q_BHTK * factor_, k_BHSK.transpose(-2, -1));
}

}  // namespace headlab
