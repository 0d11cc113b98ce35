#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// Normalises each token's vector: x[..., D] -> x[..., D].
struct Norm : torch::nn::Module, Initialised {
  virtual Tensor normalise(const Tensor& x) = 0;
};

using Norms = Registry<Norm, int64_t>;  // context: the width D
const Norms& norms();
const Catalogue& norm_catalogue();

/// epsilon bounds the gain: a vector whose numbers are (nearly) equal is not blown up.
struct LayerNormOptions : Described<LayerNormOptions> {
  double epsilon = 1e-5;
  bool affine = true;
  void describe(Fields& fields) override;
};

struct RmsNormOptions : Described<RmsNormOptions> {
  double epsilon = 1e-6;
  bool affine = true;
  void describe(Fields& fields) override;
};

struct MinMaxOptions : Described<MinMaxOptions> {
  double epsilon = 1e-5;
  bool affine = true;
  void describe(Fields& fields) override;
};

/// gamma * (x - mean) / sqrt(variance + epsilon) + beta, the variance over D, not D - 1          (1607.06450)
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

/// gamma * x / sqrt(mean(x^2) + epsilon)          (1910.07467, eq. 4)
class RmsNorm : public Norm {
 public:
  RmsNorm(const RmsNormOptions& options, int64_t width);
  Tensor normalise(const Tensor& x) override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  int64_t width_;
  double epsilon_;
  Tensor weight;  // gamma, [D]; undefined where not affine
};

/// gamma * (x - min) / (max - min + epsilon) + beta, the least and the largest of the vector's own numbers: they become
/// 0 and (nearly) 1.
class MinMaxNorm : public Norm {
 public:
  MinMaxNorm(const MinMaxOptions& options, int64_t width);
  Tensor normalise(const Tensor& x) override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
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
