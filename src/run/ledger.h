#pragma once

#include <filesystem>

#include "src/run/experiment.h"

namespace headlab {

/// What was found of one claim.
struct ClaimRow {
  std::string claim, control, expected, measured;
  std::string answer;                           // "holds", "does not hold", "not enough evidence"
  std::optional<double> difference, low, high;  // of a comparison: that - bound, and its 95 % interval over the seeds
  std::size_t runs = 0;                         // seeds of a comparison, runs of a claim of each
};

/// What was found of one spec.
struct LedgerEntry {
  std::string spec;  // its file
  std::string name, paper;
  int64_t number = 0;  // of the paper, which the file's name begins with; 0: none
  std::size_t runs = 0;
  double seconds = 0;  // of all runs, whenever they ran
  std::vector<ClaimRow> claims;
  std::string failed;  // why it could not be run to its end; empty: it was
};

/// A spec's claims, those of its runs joined over the runs ("holds in 3 of 3 runs"), then its comparisons.
LedgerEntry ledger_entry(const std::string& spec_path, const RunSpec& spec, const ExperimentOutcome& outcome);
/// That of a spec whose run failed.
LedgerEntry failed_entry(const std::string& spec_path, const RunSpec& spec, const std::string& why);

/// The number that the name of a spec's file begins with: 22 for "22-few-heads.json"; 0 where it begins with none.
int64_t paper_number(const std::string& spec_path);

/// Keeps what was found in `out`/ledger.json and `out`/ledger.csv: entries of earlier calls stay, those of the same
/// name are replaced. Ordered by paper and file. Throws FileError where ledger.json is damaged.
void keep_in_ledger(const std::filesystem::path& out, const std::vector<LedgerEntry>& entries);

/// For a person: paper, claim (control), expected, measured with its interval, verdict; a table where it is at most
/// `columns` wide, else the claims one below the other.
std::string ledger_text(const std::vector<LedgerEntry>& entries, int64_t columns);

/// "61 claims: 40 hold, 12 do not hold, 9 have not enough evidence"
std::string ledger_answer(const std::vector<LedgerEntry>& entries);

/// The rows as a Markdown table: statement (control), expected, measured, verdict.
std::string markdown_table(const std::vector<LedgerEntry>& entries);

/// The text of a file with all between the lines `<!-- begin NAME -->` and `<!-- end NAME -->` replaced.
/// Throws UsageError where it lacks them.
std::string replaced_section(const std::string& text, const std::string& name, const std::string& section);

}  // namespace headlab
