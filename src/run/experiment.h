#pragma once

#include <functional>

#include "src/run/run.h"
#include "src/spec/compare.h"
#include "src/spec/sweep.h"

namespace headlab {

/// What came of a spec: its runs, and what its claims say about them together.
struct ExperimentOutcome {
  std::vector<RunOutcome> runs;
  std::vector<Comparison> comparisons;  // empty where a part of the runs was run
  bool holds = true;                    // every claim of every run, and every comparison
};

/// Runs every variant of a spec (or a part of them), one after another, then judges the claims about its arms. What was
/// run before is not run again. Where there are several runs, writes into runs/<name>/ experiment.json (runs,
/// comparisons, and the summary of src/run/summary.h), summary.csv and report.html, and prints the summary. `ran` is
/// called after each run. Throws Interrupted as run_variant does.
ExperimentOutcome run_experiment(const std::vector<RunVariant>& variants, const std::string& spec_path,
                                 const RunFlags& flags, Console::Kind kind, const std::optional<Part>& only,
                                 const std::atomic<bool>& stop, const std::function<void()>& ran = {});

/// Writes report.html of a folder with experiment.json, from its files and those of its runs; what is missing or
/// damaged of a run is left out. Throws FileError where there is no experiment.json.
void write_experiment_report(const std::filesystem::path& folder);

/// One page of several runs, of any specs, beside each other: `page`, and its summary as CSV beside it. A folder is
/// that of a run, or of all runs of a spec. Runs of one spec that differ in their seed alone are a group. Throws
/// FileError for a folder that is neither.
void write_comparison(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& page,
                      const std::string& command);

}  // namespace headlab
