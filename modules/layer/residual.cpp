#include "modules/layer/residual.h"

#include "modules/layer/admin.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// x + dropout(f(norm(x)))
struct PreNorm : Residual {
  explicit PreNorm(const NoOptions&) {}
  Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f, Forward&) const override {
    return relevance::sum(x, drop(f(norms.norm->normalise(x)), dropout.p, training, dropout.kind));
  }
  bool final_norm() const override { return true; }
};

/// norm(x + dropout(f(x)))          (1706.03762, section 5.4)
struct PostNorm : Residual {
  explicit PostNorm(const NoOptions&) {}
  Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f, Forward&) const override {
    return norms.norm->normalise(relevance::sum(x, drop(f(x), dropout.p, training, dropout.kind)));
  }
  bool final_norm() const override { return false; }
};

/// x + dropout(after(f(norm(x))))          (2105.13290, section 2.4)
struct SandwichNorm : Residual {
  explicit SandwichNorm(const NoOptions&) {}
  Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f, Forward&) const override {
    return relevance::sum(x,
                          drop(norms.after->normalise(f(norms.norm->normalise(x))), dropout.p, training, dropout.kind));
  }
  bool final_norm() const override { return true; }
  bool has_second_norm() const override { return true; }
};

}  // namespace

const Residuals& residuals() {
  static const Residuals registry =
      Residuals("residual", "where a sublayer's norm stands")
          .entry<PreNorm, NoOptions>("pre", "norm before the sublayer, and one after the stack", "2002.04745")
          .entry<PostNorm, NoOptions>("post", "norm after the residual sum", "1706.03762")
          .entry<SandwichNorm, NoOptions>(
              "sandwich", "norms before and after the sublayer, both before the sum, and one after the stack",
              "2105.13290")
          .entry<Admin, AdminOptions>(
              "admin",
              "norm after the sum, in which x is scaled by a vector that starts from measured variances and learns",
              "2004.08249");
  return registry;
}
const Catalogue& residual_catalogue() { return residuals().catalogue(); }

}  // namespace headlab
