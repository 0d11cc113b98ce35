#include "src/run/experiment.h"

#include <algorithm>
#include <sstream>

#include "src/checkpoint/json_file.h"
#include "src/report/experiment_page.h"
#include "src/run/saved_model.h"
#include "src/run/summary.h"
#include "src/terminal/screen.h"

namespace headlab {
namespace {

// The claims' view of each seed, {arm: {stage: ...}}, for the seeds that every arm has.
std::vector<nlohmann::ordered_json> views_by_seed(const std::vector<RunVariant>& variants,
                                                  const std::vector<RunOutcome>& runs) {
  std::map<int64_t, nlohmann::ordered_json> views;
  std::set<std::string> arms;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    arms.insert(variants[i].arm);
    views[variants[i].spec->seed][variants[i].arm] = claim_view(runs[i].results);
  }
  std::vector<nlohmann::ordered_json> complete;
  for (auto& [seed, view] : views)
    if (view.size() == arms.size())
      complete.push_back(arms.size() == 1 && arms.count("") ? view.at("") : std::move(view));
  return complete;
}

RunFiles files_of(const std::filesystem::path& folder, bool metrics) {
  RunFiles files;
  const auto read = [&](const char* name, nlohmann::ordered_json& to) {
    try {
      if (std::filesystem::exists(folder / name)) to = read_ordered_json_file(folder / name);
    } catch (const FileError&) {  // the run's own page says it
    }
  };
  read("results.json", files.results);
  read("spec.json", files.spec);
  read("environment.json", files.environment);
  try {
    if (metrics) files.metrics = metric_rows(folder);
  } catch (const FileError&) {}
  return files;
}

}  // namespace

ExperimentOutcome run_experiment(const std::vector<RunVariant>& variants, const std::string& spec_path,
                                 const RunFlags& flags, Console::Kind kind, const std::optional<Part>& only,
                                 const std::atomic<bool>& stop, const std::function<void()>& ran) {
  ExperimentOutcome outcome;
  const auto chosen = only.value_or(Part{});
  for (const auto& variant : part(variants, chosen)) {
    Console console(kind);
    try {
      outcome.runs.push_back(run_variant(variant, spec_path, flags, console, stop));
    } catch (const Interrupted& stopped) {
      throw Interrupted(std::string("stopped ") + stopped.what() + ". Go on with: " +
                        (flags.go_on.empty() ? flags.command : flags.go_on) + " (resumes by itself)");
    }
    if (ran) ran();
    outcome.holds = outcome.holds && outcome.runs.back().expectations_hold;
  }
  const auto& spec = *variants.front().spec;
  if (chosen.count > 1 || (variants.size() == 1 && spec.compare.empty())) return outcome;
  nlohmann::ordered_json file{{"name", spec.name},
                              {"question", spec.question},
                              {"paper", spec.paper},
                              {"command", flags.command},
                              {"runs", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < variants.size(); ++i)
    file["runs"].push_back({{"label", variants[i].label},
                            {"arm", variants[i].arm},
                            {"group", variants[i].group},
                            {"seed", variants[i].spec->seed},
                            {"id", outcome.runs[i].folder.filename().string()}});
  const auto views = views_by_seed(variants, outcome.runs);
  for (const auto& claim : spec.compare) {
    outcome.comparisons.push_back(compare(claim, views));
    outcome.holds = outcome.holds && outcome.comparisons.back().verdict.holds;
    file["compare"].push_back(to_json(outcome.comparisons.back()));
  }
  const auto rows = summarised(variants, outcome.runs);
  file["summary"] = to_json(rows);
  const auto folder = flags.out / spec.name;
  write_file_atomically(folder / "experiment.json", file.dump(2) + "\n");
  write_file_atomically(folder / "summary.csv", to_csv(rows));
  write_experiment_report(folder);
  Console console(kind);
  if (variants.size() > 1) {
    std::istringstream table(summary_text(rows, outcome.runs, Screen::of(1).columns));
    for (std::string line; std::getline(table, line);) console.plain(line);
  }
  std::istringstream lines(comparison_text(outcome.comparisons));
  for (std::string line; std::getline(lines, line);) console.line("compare", line);
  if (variants.size() > 1)
    console.plain("summary: " + (folder / "summary.csv").string() + "   report: " + (folder / "report.html").string());
  return outcome;
}

void write_experiment_report(const std::filesystem::path& folder) {
  constexpr std::size_t most_with_metrics = 200;  // runs whose training is drawn
  const auto file = read_ordered_json_file(folder / "experiment.json");
  std::vector<RunFiles> runs;
  const auto listed = file.find("runs");
  if (listed != file.end() && listed->is_array())
    for (const auto& run : *listed) {
      const auto id = run.is_object() ? run.value("id", nlohmann::ordered_json()) : nlohmann::ordered_json();
      const bool plain = id.is_string() && !id.get_ref<const std::string&>().empty() &&
                         id.get_ref<const std::string&>().find_first_of("/.") == std::string::npos;
      runs.push_back(plain ? files_of(folder / id.get<std::string>(), listed->size() <= most_with_metrics)
                           : RunFiles{});
    }
  write_file_atomically(folder / "report.html", experiment_html(file, runs));
}

void write_comparison(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& page,
                      const std::string& command) {
  std::vector<std::filesystem::path> all;
  for (const auto& folder : folders) {
    const auto runs = run_folders(folder);
    if (runs.empty())
      throw FileError(folder.string() +
                      ": no run folder, nor one of runs; expected results.json there, or in folders below");
    for (const auto& run : runs)
      if (std::find(all.begin(), all.end(), run) == all.end()) all.push_back(run);
  }
  std::vector<RunVariant> variants;
  std::vector<RunOutcome> outcomes;
  std::vector<RunFiles> files;
  nlohmann::ordered_json file{{"name", "comparison"},
                              {"question", std::to_string(all.size()) + " runs beside each other"},
                              {"command", command},
                              {"runs", nlohmann::ordered_json::array()}};
  for (const auto& folder : all) {
    files.push_back(files_of(folder, all.size() <= 200));
    const auto& results = files.back().results;
    if (!results.contains("stages"))
      throw FileError((folder / "results.json").string() + ": expected the results of a run");
    const auto of = [&](const char* key) {
      return results.contains(key) && results.at(key).is_string() ? results.at(key).get<std::string>() : std::string();
    };
    // Within a spec, what differs beside the seed is part of the run's group; runs of one spec with other settings
    // differ by their id.
    const auto kind = !of("group").empty() ? of("group") : of("arm");
    const auto name = of("name") + (kind.empty() ? "" : ", " + kind);
    const auto bits = [](nlohmann::ordered_json spec) {  // what runs of a group have in common
      for (const char* key : {"seed", "seeds", "question", "paper", "expect", "compare"}) spec.erase(key);
      return spec;
    };
    auto group = name;
    for (std::size_t i = 0; i + 1 < files.size(); ++i) {
      if (variants[i].label != name) continue;
      if (bits(files[i].spec) == bits(files.back().spec)) {
        group = variants[i].group;
        break;
      }
      group = name + " (" + folder.filename().string() + ")";
    }
    variants.push_back({name, nullptr, "", group});
    RunOutcome outcome;
    outcome.folder = folder;
    outcome.results = results;
    outcomes.push_back(std::move(outcome));
    file["runs"].push_back({{"label", name},
                            {"arm", ""},
                            {"group", group},
                            {"seed", results.value("seed", nlohmann::ordered_json())},
                            {"id", folder.string()}});
  }
  const auto rows = summarised(variants, outcomes);
  file["summary"] = to_json(rows);
  write_file_atomically(page, experiment_html(file, files));
  auto table = page;
  write_file_atomically(table.replace_extension(".csv"), to_csv(rows));
}

}  // namespace headlab
