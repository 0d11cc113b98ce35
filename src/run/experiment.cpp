#include "src/run/experiment.h"

#include <algorithm>
#include <sstream>

#include "src/run/summary.h"
#include "src/terminal/format.h"
#include "src/terminal/screen.h"

namespace headlab {
namespace {

// The claims' view of each seed, {arm: {stage: ...}}, for the seeds that every arm has.
std::vector<nlohmann::ordered_json> views_by_seed(const std::vector<RunVariant>& variants, const std::vector<RunOutcome>& runs) {
  std::map<int64_t, nlohmann::ordered_json> views;
  std::set<std::string> arms;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    arms.insert(variants[i].arm);
    views[variants[i].spec->seed][variants[i].arm] = claim_view(runs[i].results);
  }
  std::vector<nlohmann::ordered_json> complete;
  for (auto& [seed, view] : views)
    if (view.size() == arms.size()) complete.push_back(arms.size() == 1 && arms.count("") ? view.at("") : std::move(view));
  return complete;
}

std::string cell(const std::string& text) {
  std::string safe;
  for (char c : text) safe += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return safe;
}

}  // namespace

ExperimentOutcome run_experiment(const std::vector<RunVariant>& variants, const std::string& spec_path, const RunFlags& flags,
                                 Console::Kind kind, const std::optional<Part>& only, const std::atomic<bool>& stop) {
  ExperimentOutcome outcome;
  const auto chosen = only.value_or(Part{});
  for (const auto& variant : part(variants, chosen)) {
    Console console(kind);
    try {
      outcome.runs.push_back(run_variant(variant, spec_path, flags, console, stop));
    } catch (const Interrupted& stopped) {
      throw Interrupted(std::string("stopped ") + stopped.what() + ". Go on with: " + flags.command + " (resumes by itself)");
    }
    outcome.holds = outcome.holds && outcome.runs.back().expectations_hold;
  }
  const auto& spec = *variants.front().spec;
  if (chosen.count > 1 || (variants.size() == 1 && spec.compare.empty())) return outcome;
  nlohmann::ordered_json file{{"name", spec.name}, {"question", spec.question}, {"paper", spec.paper}, {"runs", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < variants.size(); ++i)
    file["runs"].push_back({{"label", variants[i].label}, {"arm", variants[i].arm}, {"seed", variants[i].spec->seed},
                            {"id", outcome.runs[i].folder.filename().string()}});
  const auto views = views_by_seed(variants, outcome.runs);
  for (const auto& claim : spec.compare) {
    outcome.comparisons.push_back(compare(claim, views));
    outcome.holds = outcome.holds && outcome.comparisons.back().verdict.holds;
    file["compare"].push_back(to_json(outcome.comparisons.back()));
  }
  const auto rows = summarised(variants, outcome.runs);
  file["summary"] = to_json(rows);
  write_file_atomically(flags.out / spec.name / "experiment.json", file.dump(2) + "\n");
  write_file_atomically(flags.out / spec.name / "summary.csv", to_csv(rows));
  Console console(kind);
  if (variants.size() > 1) {
    std::istringstream table(summary_text(rows, outcome.runs, Screen::of(1).columns));
    for (std::string line; std::getline(table, line);) console.plain(line);
    console.plain("summary: " + (flags.out / spec.name / "summary.csv").string());
  }
  std::istringstream lines(comparison_text(outcome.comparisons));
  for (std::string line; std::getline(lines, line);) console.line("compare", line);
  return outcome;
}

std::vector<ClaimRow> claim_rows(const std::string& spec_path, const RunSpec& spec, const ExperimentOutcome& outcome) {
  std::vector<ClaimRow> rows;
  for (std::size_t i = 0; i < spec.expect.size(); ++i) {
    std::size_t held = 0;
    std::vector<Verdict> verdicts;
    for (const auto& run : outcome.runs) {
      verdicts.push_back(judge(spec.expect[i], claim_view(run.results)));
      held += verdicts.back().holds;
    }
    auto measured = measured_text(verdicts.front());
    if (verdicts.size() > 1) {
      const auto by_left = [](const Verdict& a, const Verdict& b) { return a.left < b.left; };
      measured = measured_text(*std::min_element(verdicts.begin(), verdicts.end(), by_left)) + " to " +
                 measured_text(*std::max_element(verdicts.begin(), verdicts.end(), by_left)) + ", holds in " + std::to_string(held) +
                 " of " + std::to_string(verdicts.size()) + " runs";
    }
    rows.push_back({spec_path, spec.paper, spec.expect[i].claim, expected_text(verdicts.front()), measured, held == verdicts.size() ? "holds" : "does not hold"});
  }
  for (const auto& comparison : outcome.comparisons)
    rows.push_back({spec_path, spec.paper, comparison.verdict.claim, expected_text(comparison.verdict), measured_text(comparison),
                    comparison.answer()});
  return rows;
}

std::string markdown_table(const std::vector<ClaimRow>& rows) {
  std::string text = "| spec | statement | expected | measured | verdict |\n|---|---|---|---|---|\n";
  for (const auto& row : rows)
    text += "| " + cell(std::filesystem::path(row.spec).filename().string()) + " | " + cell(row.claim) +
            (row.paper.empty() ? "" : " (" + row.paper + ")") + " | `" + cell(row.expected) + "` | " + cell(row.measured) + " | " +
            (row.answer == "holds" ? row.answer : "**" + row.answer + "**") + " |\n";
  return text;
}

std::string replaced_section(const std::string& text, const std::string& name, const std::string& section) {
  const auto begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->";
  const auto from = text.find(begin);
  const auto to = from == std::string::npos ? from : text.find(end, from);
  if (to == std::string::npos)
    throw UsageError("expected the lines \"<!-- begin " + name + " -->\" and \"" + end + "\", between which the table goes");
  return text.substr(0, from + begin.size()) + section + text.substr(to);
}

}  // namespace headlab
