#pragma once

#include <torch/nn/module.h>

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"

namespace headlab {

/// Normalises each token's vector: x[..., D] -> x[..., D].
struct Norm : torch::nn::Module, Initialised {
  virtual Tensor normalise(const Tensor& x) = 0;
};

using Norms = Registry<Norm, int64_t>;  // context: the width D
const Norms& norms();
const Catalogue& norm_catalogue();

struct LayerNormOptions : Described<LayerNormOptions> {
  double epsilon = 1e-5;
  bool affine = true;
  void describe(Fields& fields) override;
};

/// gamma * (x - mean) / sqrt(variance + epsilon) + beta          (1607.06450)
class LayerNorm : public Norm {
 public:
  LayerNorm(const LayerNormOptions& options, int64_t width);
  Tensor normalise(const Tensor& x) override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  int64_t width_;
  double epsilon_;
  Tensor weight, bias;  // gamma and beta, [D]; undefined where not affine
};

/// x itself.
struct NoNorm : Norm {
  NoNorm(const NoOptions&, int64_t) {}
  Tensor normalise(const Tensor& x) override { return x; }
  void draw(const std::function<at::Generator(const std::string&)>&) override {}
};

}  // namespace headlab
