#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "modules/base/fields.h"

namespace headlab {

struct EarlyStoppingOptions : Described<EarlyStoppingOptions> {
  std::string metric = "loss";
  int64_t patience = 0;
  double min_delta = 0;
  void describe(Fields& fields) override;
};

/// Watches the validations of a training: which was the best, and whether to stop.
///
/// A validation is an improvement where its metric is better than the best so far by more than min_delta (lower for
/// losses and perplexities, higher for all else; the first always is, NaN never). After `patience` validations in a row
/// without an improvement the training is over. The weights that are left are those of the best validation, whether the
/// training was stopped or did all its steps.
class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {}
  bool on() const { return options_.patience > 0; }
  /// Takes note of a validation; true where it is the best so far. Throws UsageError where the metric was not measured.
  bool see(int64_t step, const std::map<std::string, double>& metrics);
  bool over() const { return on() && without_ >= options_.patience; }
  /// The step of the best validation (0: none yet), and all that it measured.
  int64_t best_step() const { return best_step_; }
  const std::map<std::string, double>& best() const { return best_; }
  const std::string& metric() const { return options_.metric; }

  /// {"metric", "value", "step", "metrics", "without"}; value null before the first validation.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  EarlyStoppingOptions options_;
  int64_t best_step_ = 0, without_ = 0;
  std::map<std::string, double> best_;
};

}  // namespace headlab
