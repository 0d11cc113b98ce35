#pragma once

#include <map>
#include <string>

#include "modules/base/heads.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// A module of a token mixer that changes by what its passes saw, and not by gradients alone. A pass in training mode
/// leaves sums in Forward::stats, under names that begin with its site; update() is called once after each optimiser
/// step, with the sums over all batches of the step. What it keeps is in buffers, so that checkpoints have it.
struct Updated {
  virtual ~Updated() = default;
  /// Without gradient. `stats` has what all sites left, or nothing of this one.
  virtual void update(Site site, const std::map<std::string, torch::Tensor>& stats) = 0;
};

}  // namespace headlab
