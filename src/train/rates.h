#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "src/train/optimizer.h"

namespace headlab {

/// How fast chosen parameters learn.
struct RateOptions : Described<RateOptions> {
  std::vector<std::string> parameters, except;  // patterns, see src/train/parameter_names.h
  double factor = 1;
  void describe(Fields& fields) override;
};

/// The learning rate of each parameter, as a multiple of the schedule's. Of several entries that choose a parameter the
/// last counts; one that none chooses has 1. With 0 a parameter is held fixed: it gets no gradient, no part in the
/// gradient's norm and no decay.
///
/// Parameters of one factor share an optimiser, so that its rule is the same for all and its state is by name.
class Rates {
 public:
  /// Throws UsageError for a pattern that no parameter has, and where all are held fixed.
  Rates(const std::vector<RateOptions>& options, const NamedParameters& all, const Choice& optimizer);

  const NamedParameters& trained() const { return trained_; }
  const NamedParameters& fixed() const { return fixed_; }
  double factor(const std::string& name) const { return factors_.at(name); }

  /// One update of all, where the schedule says `rate`.
  void step(double rate);
  TensorMap state() const;
  void restore(const TensorMap& state, const std::string& from);

 private:
  NamedParameters trained_, fixed_;
  std::map<std::string, double> factors_;
  std::vector<std::pair<double, std::shared_ptr<Optimizer>>> groups_;
};

/// Parameters that need no gradient for a scope, and do again after it.
class HeldFixed {
 public:
  explicit HeldFixed(const NamedParameters& parameters);
  ~HeldFixed();
  HeldFixed(const HeldFixed&) = delete;
  HeldFixed& operator=(const HeldFixed&) = delete;

 private:
  NamedParameters parameters_;
};

}  // namespace headlab
