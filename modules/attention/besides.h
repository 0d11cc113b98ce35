#pragma once

#include <vector>

#include "modules/attention/call.h"

/// What a few entries of slots do besides their slot's own work: the attention asks those that derive from these.
namespace headlab {

/// An adapter with a loss of its own. Called in each pass in training mode; what it adds goes to call.run.aux.
struct AddsLoss {
  virtual ~AddsLoss() = default;
  virtual void add_loss(const AttentionCall& call) = 0;
};

/// A projection whose units of keys and values are not the shape's groups. Called before all heads but those at these positions
/// are removed, and before the shape knows: what axes() can't say of removal.
struct OwnUnits {
  virtual ~OwnUnits() = default;
  virtual void keep(const std::vector<int64_t>& positions) = 0;
};

}  // namespace headlab
