#pragma once

#include <functional>

#include "src/train/optimizer.h"

namespace headlab {

/// Keeps chosen parameters small. Conventions, with coefficient c and learning rate lr:
///
///   l1      adds c sum|w| to what a step minimises: its gradient is c sign(w), 0 at w = 0
///   l2      adds c/2 sum w^2: its gradient is c w
///   decay   takes w = w - lr c w before the optimiser's step, and never enters its moments     (1711.05101)
///
/// The gradients of l1 and l2 are part of the step's gradient: they are added once an update, whatever `accumulate` is,
/// and before `clip`. The reported loss is without them; their value is reported beside it as "penalty".
struct Penalty {
  virtual ~Penalty() = default;
  /// Adds to the gradients, after the backward pass and before clipping.
  virtual void add_gradients() {}
  /// Changes the parameters themselves, before the optimiser does. `rate_of`: a parameter's learning rate, by its name.
  virtual void decay(const std::function<double(const std::string& name)>& rate_of) { (void)rate_of; }
  /// What it adds to the minimised sum; undefined: nothing.
  virtual Tensor value() const { return {}; }
};

/// Context: the trained parameters, and where the penalty stands in the spec ("penalties[0]").
using Penalties = Registry<Penalty, const NamedParameters&, const std::string&>;
const Penalties& penalties();
const Catalogue& penalty_catalogue();

struct PenaltyOptions : Described<PenaltyOptions> {
  double coefficient = 0;
  std::vector<std::string> parameters;              // patterns, see src/train/parameter_names.h
  std::vector<std::string> except{"bias", "norm"};  // patterns
  void describe(Fields& fields) override;
};

}  // namespace headlab
