#include "src/report/experiment_page.h"

#include <algorithm>
#include <set>

#include "src/report/claims.h"
#include "src/report/experiment.h"
#include "src/report/figures.h"
#include "src/report/page.h"
#include "src/report/pruning.h"
#include "src/terminal/format.h"

namespace headlab {
namespace report {

using html::escape;
using html::number_cell;
using html::text_cell;

Experiment::Experiment(const json& file, const std::vector<RunFiles>& runs) : file(file), runs(runs) {
  auto& listed = member(file, "runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto& one = listed.is_array() && i < listed.size() ? listed[i] : member(file, "");
    auto name = text_of(one, "group");
    if (name.empty()) name = text_of(one, "arm");
    auto found = std::find_if(groups.begin(), groups.end(), [&](auto& group) { return group.name == name; });
    if (found == groups.end()) found = groups.insert(groups.end(), RunGroup{name, {}});
    found->runs.push_back(i);
  }
  if (auto& rows = member(file, "summary"); rows.is_array()) {
    for (auto& row : rows) {
      Measured made{
          text_of(row, "group"), text_of(row, "stage"), text_of(row, "measure"), number_of(row, "at"), 0, 0, 0, {}};
      auto mean = number_of(row, "mean"), low = number_of(row, "low"), high = number_of(row, "high");
      if (!mean) continue;
      made.mean = *mean;
      made.low = low.value_or(*mean);
      made.high = high.value_or(*mean);
      if (auto& values = member(row, "values"); values.is_array()) {
        for (auto& value : values) made.values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
      }
      if (made.values.empty()) continue;
      if (!made.at) places_.emplace(std::tuple(made.group, made.stage, made.measure), summary.size());
      summary.push_back(std::move(made));
    }
  }
  std::set<std::pair<std::string, std::string>> known;
  auto look = [&](const std::string& stage, const json& result) {
    for (auto& [metric, value] : member(result, "metrics").items()) {
      if (known.insert({stage, metric}).second) metrics.emplace_back(stage, metric);
    }
  };
  for (auto& run : runs) {
    auto& stages = member(run.results, "stages");
    if (!stages.is_object()) continue;
    for (auto& [name, stage] : stages.items()) {
      look(name, stage);
      auto& repeated = member(stage, "runs");
      if (!repeated.is_array()) continue;
      for (auto& repetition : repeated) {
        if (!repetition.is_object()) continue;
        for (auto& [inner, result] : repetition.items()) look(name + "/" + inner, result);
      }
    }
  }
}

const Measured* Experiment::find(const std::string& group, const std::string& stage, const std::string& measure) const {
  auto found = places_.find(std::tuple(group, stage, measure));
  return found == places_.end() ? nullptr : &summary[found->second];
}

std::string head_of_experiment(const Experiment& experiment) {
  auto& file = experiment.file;
  auto name = text_of(file, "name"), question = text_of(file, "question");
  std::vector<std::string> facts = {name, text_of(file, "paper")};
  auto runs = experiment.runs.size();
  facts.push_back(std::to_string(runs) + (runs == 1 ? " run" : " runs"));
  if (auto groups = experiment.groups.size(); groups > 1) facts.back() += " in " + std::to_string(groups) + " groups";
  double seconds = 0;
  for (auto& run : experiment.runs) seconds += number_of(run.results, "seconds").value_or(0);
  if (runs > 0) {
    auto& environment = experiment.runs.front().environment;
    facts.push_back(text_of(environment, "device"));
    if (auto threads = number_of(environment, "threads"))
      facts.push_back(significant(*threads, 6) + (*threads == 1 ? " thread" : " threads"));
  }
  if (seconds > 0) facts.push_back(duration(seconds) + " of runs");
  std::string line;
  for (auto& fact : facts) {
    if (!fact.empty()) line += (line.empty() ? "" : " · ") + fact;
  }
  std::vector<json> claims;
  if (auto& all = member(file, "compare"); all.is_array()) claims.assign(all.begin(), all.end());
  std::vector<const json*> results;
  for (auto& run : experiment.runs) results.push_back(&run.results);
  for (auto& claim : joined_claims(results)) claims.push_back(std::move(claim));
  return "<header><p class=\"run\">" + escape(line) + "</p>\n<h1>" + escape(question.empty() ? name : question) +
         "</h1>\n" + claims_html(claims) + "</header>\n";
}

std::string experiment_pruning(const Experiment& experiment) {
  std::vector<CurveGroup> groups;
  for (auto& group : experiment.groups) {
    groups.push_back({group.name, {}});
    for (auto run : group.runs)
      groups.back().runs.push_back(pruning_curves_of(experiment.runs[run].results, experiment.runs[run].spec));
  }
  return pruning_charts(groups);
}

std::string experiment_runs(const Experiment& experiment) {
  std::vector<html::Row> rows;
  auto& listed = member(experiment.file, "runs");
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    auto& results = experiment.runs[i].results;
    auto& one = listed.is_array() && i < listed.size() ? listed[i] : member(experiment.file, "");
    auto id = text_of(one, "id"), label = text_of(one, "label");
    html::Cell link;  // an id is a folder beside this page
    bool plain = !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c); });
    if (plain) link.content = "<a href=\"" + id + "/report.html\">" + id + "</a>";
    int64_t held = 0, claims = 0;
    if (auto& expected = member(results, "expect"); expected.is_array()) {
      for (auto& claim : expected) ++claims, held += member(claim, "holds") == true;
    }
    auto seconds = number_of(results, "seconds"), seed = number_of(one, "seed");
    rows.push_back(
        {{text_cell(label.empty() ? "run " + std::to_string(i + 1) : label), text_cell(text_of(one, "arm")),
          seed ? number_cell(significant(*seed, 9), *seed) : html::Cell{}, link,
          claims > 0 ? text_cell(std::to_string(held) + " of " + std::to_string(claims) + " hold") : html::Cell{},
          seconds ? number_cell(duration(*seconds), *seconds) : html::Cell{}}});
  }
  return html::table("Each run has a page of its own", {"run", "arm", "seed", "page", "its own claims", "time"}, rows,
                     true);
}

std::string experiment_repetition(const Experiment& experiment) {
  auto command = text_of(experiment.file, "command");
  std::string result;
  if (!command.empty()) result += "<p>The command:</p>\n<pre><code>" + escape(command) + "</code></pre>\n";
  if (experiment.runs.empty()) return result;
  auto environment = facts(experiment.runs.front().environment);
  if (!environment.empty()) result += "<h3>Environment</h3>\n" + environment;
  auto& spec = experiment.runs.front().spec;
  if (spec.is_object() && !spec.empty()) {
    result +=
        html::details("The resolved spec of the first run", "<pre><code>" + escape(dump(spec, 2)) + "</code></pre>");
  }
  return result;
}

}  // namespace report

std::string experiment_html(const nlohmann::ordered_json& file, const std::vector<RunFiles>& runs) {
  using namespace report;
  Experiment experiment(file.is_object() ? file : member(file, ""), runs);
  const auto heads = heads_of_experiment(experiment);
  std::vector<PagePart> parts{{"results", "Results", experiment_results(experiment)},
                              {"differences", "What the runs differ in", experiment_differences(experiment)},
                              {"pruning", "Heads kept against quality", experiment_pruning(experiment)},
                              {"sweeps", "What changes with what", experiment_sweeps(experiment)},
                              {"training", "Training", experiment_training(experiment)},
                              {"maps", "Head maps", experiment_maps(heads)},
                              {"heads", "Heads one by one", heads.columns.empty() ? "" : heads_table(heads)},
                              {"runs", "Runs", experiment_runs(experiment)},
                              {"repeat", "How to repeat it", experiment_repetition(experiment)}};
  return page_of_parts(text_of(experiment.file, "name"), text_of(experiment.file, "question"),
                       head_of_experiment(experiment), parts);
}

}  // namespace headlab
