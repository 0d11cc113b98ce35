#include "modules/layer/residual.h"

#include <torch/torch.h>

namespace headlab {
namespace {

/// x + dropout(f(norm(x)))
struct PreNorm : Residual {
  explicit PreNorm(const NoOptions&) {}
  Tensor join(const Tensor& x, Norm& norm, double dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f) const override {
    return x + torch::dropout(f(norm.normalise(x)), dropout, training);
  }
  bool final_norm() const override { return true; }
};

/// norm(x + dropout(f(x)))          (1706.03762, section 5.4)
struct PostNorm : Residual {
  explicit PostNorm(const NoOptions&) {}
  Tensor join(const Tensor& x, Norm& norm, double dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f) const override {
    return norm.normalise(x + torch::dropout(f(x), dropout, training));
  }
  bool final_norm() const override { return false; }
};

}  // namespace

const Residuals& residuals() {
  static const Residuals registry = Residuals("residual", "where a sublayer's norm stands")
                                        .entry<PreNorm, NoOptions>("pre", "norm before the sublayer, and one after the stack", "2002.04745")
                                        .entry<PostNorm, NoOptions>("post", "norm after the residual sum", "1706.03762");
  return registry;
}
const Catalogue& residual_catalogue() { return residuals().catalogue(); }

}  // namespace headlab
