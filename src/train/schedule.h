#pragma once

#include "modules/tensor/registry.h"

namespace headlab {

/// The learning rate of each step.
struct Schedule {
  virtual ~Schedule() = default;
  /// step >= 1
  virtual double rate(int64_t step) const = 0;
};

/// Context: d_model and the number of steps of the training.
using Schedules = Registry<Schedule, int64_t, int64_t>;
const Schedules& schedules();
const Catalogue& schedule_catalogue();

}  // namespace headlab
