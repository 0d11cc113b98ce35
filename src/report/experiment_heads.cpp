#include <algorithm>
#include <numeric>

#include "src/report/experiment.h"
#include "src/report/sections.h"

namespace headlab::report {

Heads heads_of_experiment(const Experiment& experiment) {
  Heads all;
  for (auto& group : experiment.groups) {
    std::vector<HeadColumn> columns;  // of the group's first run that has each
    std::vector<std::map<std::string, std::vector<double>>> values;
    for (auto place : group.runs) {
      auto& files = experiment.runs[place];
      auto of_run = collect_heads(Run(files.results.is_object() ? files.results : member(files.results, ""),
                                      files.metrics, files.spec, files.environment));
      all.names.insert(of_run.names.begin(), of_run.names.end());
      for (auto& column : of_run.columns) {
        auto same = [&](auto& other) { return other.title == column.title; };
        auto found = std::find_if(columns.begin(), columns.end(), same);
        auto at = static_cast<std::size_t>(found - columns.begin());
        if (found == columns.end()) {
          columns.push_back(column);
          values.emplace_back();
        }
        for (auto& [head, value] : column.map.values) values[at][head].push_back(value);
      }
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      auto& column = columns[i];
      std::size_t most = 0;
      for (auto& [head, of_runs] : values[i]) {
        column.map.values[head] =
            std::accumulate(of_runs.begin(), of_runs.end(), 0.0) / static_cast<double>(of_runs.size());
        most = std::max(most, of_runs.size());
      }
      auto before = group.name.empty() ? "" : group.name + ", ";
      column.title = before + column.title;
      column.map.title = before + column.map.title;
      if (most > 1) column.map.unit += ", mean over " + std::to_string(most) + " seeds";
      column.map.crossed.clear();
      column.map.gone.clear();
      all.columns.push_back(std::move(column));
    }
  }
  for (auto& name : all.names) {
    if (auto place = place_of(name)) all.sizes.add(*place);
  }
  return all;
}

std::string experiment_maps(const Heads& heads) {
  constexpr std::size_t most = 12;  // more say less than the table below them, which sorts
  return heads.columns.size() > most ? "" : head_maps(heads);
}

}  // namespace headlab::report
