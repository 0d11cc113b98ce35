#pragma once

#include <memory>

#include "src/heads/head_set.h"
#include "src/heads/passes.h"
#include "src/task/task.h"

namespace headlab {

/// What takes the place of a head's output z_BHTK where it is ablated, before its gates.
struct ReplacementOptions : Described<ReplacementOptions>, Examples {
  std::string with = "zero";
  ReplacementOptions() : Examples{"train", 200} {}
  void describe(Fields& fields) override;
};

/// zero      nothing: what a removed head leaves, whatever biases there are (a scale of 0)
/// mean      the head's mean output over the tokens of some examples, so that what it gives whatever it reads stays
/// resample  at each token the head's output at another token of those examples, drawn anew (2301.04213 and others):
/// the sizes
///           and directions stay that the head's outputs have, and what they say is lost
///
/// Padding is left out of means and draws. Draws depend on the seed, the head, and how many were made before.
class Replacement {
 public:
  /// Runs the examples through the model once where `with` needs it. Throws UsageError where tokens are routed to
  /// heads: a head has no outputs of the others then.
  Replacement(const ReplacementOptions& options, Model& model, const Task& task, uint64_t seed);
  ~Replacement();

  /// The model without these heads. It must not outlive this.
  Intervention without(const HeadSet& heads);

 private:
  struct Outputs;   // of the heads at the tokens of the examples
  struct Replaced;  // puts others in their place
  std::string with_;
  Model& model_;
  uint64_t seed_;
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<Replaced> replaced_;
};

}  // namespace headlab
