#pragma once

#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/safetensors.h"

namespace headlab {

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// Each parameter once, by the first of its names; those that need no gradient left out.
NamedParameters trained_parameters(const torch::nn::Module& module);

/// Changes parameters by their gradients; each is in a file of its own in src/train/optimizer.
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

/// Copies `state` into the tensors of `mine`, an optimiser's own state. Throws FileError, before anything is copied,
/// where a tensor is missing or has another shape. `from`: the file, for the message.
void restore_state(const TensorMap& mine, const TensorMap& state, const std::string& from);

/// Divides the gradients by their total l2 norm / `limit` where that is above 1 (limit 0: never), and returns the norm.
Tensor clip_gradients(const NamedParameters& parameters, double limit);

}  // namespace headlab
