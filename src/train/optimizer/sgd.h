#pragma once

#include "src/train/optimizer.h"

namespace headlab {

struct SgdOptions : Described<SgdOptions> {
  double momentum = 0.9;
  bool nesterov = false;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// m = mu m + g,  w = w - lr m;  nesterov: w = w - lr (g + mu m)          (Sutskever et al. 2013, section 2)
/// mu = `momentum`; m starts at 0, so that the first step is w - lr g, and without momentum there is no m. The learning
/// rate multiplies m, not what is added to it, as in PyTorch. LibTorch's fused kernel.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdOptions& options, const NamedParameters& parameters);
  void step(double learning_rate) override;
  TensorMap state() const override;
  void restore(const TensorMap& state, const std::string& from) override;

 private:
  SgdOptions options_;
  NamedParameters parameters_;
  std::vector<Tensor> m_;  // empty without momentum
};

}  // namespace headlab
