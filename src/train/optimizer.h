#pragma once

#include <torch/nn/module.h>

#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "src/checkpoint/safetensors.h"

namespace headlab {

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// Each parameter once, by the first of its names; those that need no gradient left out.
NamedParameters trained_parameters(const torch::nn::Module& module);

/// Changes parameters by their gradients.
struct Optimizer {
  virtual ~Optimizer() = default;
  /// One update of every parameter that has a gradient.
  virtual void step(double learning_rate) = 0;
  /// All that the next step depends on beside the parameters.
  virtual TensorMap state() const = 0;
  /// Throws FileError where the state is another model's.
  virtual void restore(const TensorMap& state, const std::string& from) = 0;
};

using Optimizers = Registry<Optimizer, const NamedParameters&>;
const Optimizers& optimizers();
const Catalogue& optimizer_catalogue();

struct AdamWOptions : Described<AdamWOptions> {
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9, weight_decay = 0.0;
  bool decay_vectors = false;
  void describe(Fields& fields) override;
};

/// m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  w = w - lr (wd w + m^ / (sqrt(v^) + eps))          (1711.05101)
/// LibTorch's fused kernel.
class AdamW : public Optimizer {
 public:
  AdamW(const AdamWOptions& options, const NamedParameters& parameters);
  void step(double learning_rate) override;
  TensorMap state() const override;
  void restore(const TensorMap& state, const std::string& from) override;

 private:
  AdamWOptions options_;
  NamedParameters parameters_;
  std::vector<Tensor> m_, v_, steps_;  // steps_[i] is a view of all_steps_
  Tensor all_steps_;
};

/// Divides the gradients by their total l2 norm / `limit` where that is above 1 (limit 0: never), and returns the norm.
Tensor clip_gradients(const NamedParameters& parameters, double limit);

}  // namespace headlab
