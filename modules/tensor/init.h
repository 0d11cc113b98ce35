#pragma once

#include <string>

#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// A CPU generator whose numbers depend on the seed and the name alone, so that adding a parameter elsewhere changes
/// nothing here.
at::Generator named_generator(uint64_t seed, const std::string& name);

/// A module whose parameters are drawn by itself. Constructors allocate; `initialise` draws.
struct Initialised {
  virtual ~Initialised() = default;
  /// `generator(parameter)` gives the draw's own generator.
  virtual void draw(const std::function<at::Generator(const std::string&)>& generator) = 0;
};

/// Draws every parameter below `root`: modules that are Initialised draw their own, linear layers are Xavier-uniform
/// with zero bias. The draws depend on the seed and each parameter's full name alone. A module whose parameters nobody
/// draws is a bug and throws std::logic_error.
void initialise(torch::nn::Module& root, uint64_t seed);

/// Uniform in +-gain*sqrt(6 / (fan_in + fan_out)).
void xavier_uniform(Tensor weight, int64_t fan_in, int64_t fan_out, at::Generator generator, double gain = 1.0);

}  // namespace headlab
