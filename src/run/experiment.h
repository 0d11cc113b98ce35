#pragma once

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

/// Runs every variant of a spec (or a part of them), one after another, then judges the claims about its arms. What was run
/// before is not run again. Where there are several runs, writes runs/<name>/experiment.json (runs, comparisons, and the summary
/// of src/run/summary.h) and runs/<name>/summary.csv, and prints the summary. Throws Interrupted as run_variant does.
ExperimentOutcome run_experiment(const std::vector<RunVariant>& variants, const std::string& spec_path, const RunFlags& flags,
                                 Console::Kind kind, const std::optional<Part>& only, const std::atomic<bool>& stop);

/// One line of the table that `headlab reproduce` writes.
struct ClaimRow {
  std::string spec, paper, claim, expected, measured;
  std::string answer;  // "holds", "does not hold", "not enough evidence"
};

/// A spec's claims, those of its runs joined over the runs ("holds in 3 of 3 runs"), then its comparisons.
std::vector<ClaimRow> claim_rows(const std::string& spec_path, const RunSpec& spec, const ExperimentOutcome& outcome);

/// The rows as a Markdown table: statement, expected, measured, verdict.
std::string markdown_table(const std::vector<ClaimRow>& rows);

/// The text of a file with all between the lines `<!-- begin NAME -->` and `<!-- end NAME -->` replaced.
/// Throws UsageError where it lacks them.
std::string replaced_section(const std::string& text, const std::string& name, const std::string& section);

}  // namespace headlab
