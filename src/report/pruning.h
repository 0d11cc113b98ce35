#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/report/run_view.h"

/// Curves of a metric against the heads that are left, of one run and over the seeds of several.
namespace headlab::report {

/// A curve stage of one run.
struct PruningCurve {
  struct Point {
    std::optional<double> fraction;    // share of the heads that is masked
    std::optional<double> heads_kept;  // of the whole model
    std::optional<double> in_stacks;   // of the stacks that the curve masks
    double value;
    std::vector<double> random;  // of each random set of as many heads
    std::optional<double> random_mean, random_low, random_high;
  };
  std::string stage, metric;
  std::string criterion;  // "gradient": what scored the heads
  std::string scope, model;
  std::string stacks;    // "dec.cross", "enc.self + dec.self"; empty: all heads
  bool highest = false;  // the highest scores go first
  std::vector<Point> points;
};

/// The curve stages of a run's results, in their order; and of each repeat whose stages evaluate models of fewer and
/// fewer heads (score, prune, train, and again) the curve of its repetitions. What results do not say of a curve (those
/// of earlier versions: its stacks, and how many heads they keep) is taken from the resolved `spec` and from the scored
/// heads.
std::vector<PruningCurve> pruning_curves_of(const json& results, const json& spec = json::object());

/// The curves of runs that differ in their seed alone.
struct CurveGroup {
  std::string name;  // the arm; empty: the only one
  std::vector<std::vector<PruningCurve>> runs;
};

/// The charts: arms against each other (where there are several groups), the criteria of a model against each other,
/// and stacks against each other, by heads kept in the stack and by the share that is masked. The random control is a
/// line and band of its own. Empty without curves.
std::string pruning_charts(const std::vector<CurveGroup>& groups);

}  // namespace headlab::report
