#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/report/experiment_page.h"
#include "src/report/run_view.h"
#include "src/report/sections.h"

/// The sections of the page of several runs, each as HTML; empty where there is nothing for it.
namespace headlab::report {

/// Runs that differ in their seed alone.
struct RunGroup {
  std::string name;
  std::vector<std::size_t> runs;  // their places
};

/// A row of the summary.
struct Measured {
  std::string group, stage, measure;
  std::optional<double> at;
  double mean, low, high;
  std::vector<double> values;
};

/// Everything the parts of the page are made from.
struct Experiment {
  Experiment(const json& file, const std::vector<RunFiles>& runs);
  /// The mean over the seeds; null where there is none.
  const Measured* find(const std::string& group, const std::string& stage, const std::string& measure) const;
  /// What a group's results are called: its name, or "all runs" where there is but one without a name.
  static std::string shown(const RunGroup& group) { return group.name.empty() ? "all runs" : group.name; }

  const json& file;
  const std::vector<RunFiles>& runs;
  std::vector<RunGroup> groups;
  std::vector<Measured> summary;
  std::vector<std::pair<std::string, std::string>> metrics;  // {stage, metric} of evaluate stages, as they first come

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places_;
};

std::string head_of_experiment(const Experiment& experiment);
/// Metrics of evaluate stages, a row for each group and stage; and all else that was measured.
std::string experiment_results(const Experiment& experiment);
/// The options in which the groups differ.
std::string experiment_differences(const Experiment& experiment);
std::string experiment_pruning(const Experiment& experiment);
/// Metrics against the numbers that a sweep changes, and against the heads that are left.
std::string experiment_sweeps(const Experiment& experiment);
/// Loss and metrics over the steps of training, with bands over the seeds.
std::string experiment_training(const Experiment& experiment);
/// What the stages of a group's runs say of each head, as means over the seeds: the columns of each group in turn.
Heads heads_of_experiment(const Experiment& experiment);
/// Their maps; none where there are very many, which the table of heads tells better.
std::string experiment_maps(const Heads& heads);
std::string experiment_runs(const Experiment& experiment);
std::string experiment_repetition(const Experiment& experiment);

}  // namespace headlab::report
