#pragma once

#include <functional>

#include "src/ablate/replacement.h"
#include "src/heads/head_set.h"
#include "src/task/task.h"

namespace headlab {

/// A set of heads that is masked together, by a name of the user's.
struct NamedSet : Described<NamedSet> {
  std::string name;
  std::vector<std::string> heads;
  void describe(Fields& fields) override;
};

/// Sets of equal size drawn at random: the control of a chosen set.
struct RandomSets : Described<RandomSets> {
  int64_t sets = 0, size = 1;
  std::string
      like;  // a prune stage: each set has as many heads of each layer as it removed (the stage draws them: sets_like)
  void describe(Fields& fields) override;
};

struct AblateOptions : Described<AblateOptions> {
  EvaluateOptions evaluate;
  std::string metric;
  bool each_head = true;
  std::vector<std::string> stacks;
  std::vector<NamedSet> sets;
  RandomSets random;
  ReplacementOptions replace;
  std::optional<double> spare;
  AblateOptions() { evaluate.split = "valid"; }
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// `count` sets of heads of `there`, each with as many of every layer, drawn at random, as `model` has: "random 1" ...
/// Throws UsageError where a layer of `there` has fewer.
std::vector<NamedSet> sets_like(const HeadTable& there, const HeadSet& model, int64_t count, uint64_t seed);

/// What masking does to the metrics.
struct AblateRow {
  std::string name;  // a head's, a set's, or "random 3"
  HeadSet heads;
  std::map<std::string, double> metrics;
};

struct AblateResult {
  std::map<std::string, double> baseline;
  std::vector<AblateRow> each, sets;
  nlohmann::ordered_json to_json(const std::string& metric) const;
};

/// Ablates (options.replace; nothing is removed) each head alone, the named sets, and random sets, and evaluates each:
/// options.metric (empty: the task's first) and what options.evaluate.metrics names beside it, nothing else. `masked`:
/// heads that the model is without in all of it, the baseline too. Throws UsageError for a head that is not there,
/// before anything is evaluated.
AblateResult ablate(Model& model, const Task& task, const AblateOptions& options, uint64_t seed,
                    const std::function<void(int64_t done, int64_t total)>& progress = {}, const HeadSet& masked = {});

}  // namespace headlab
