#include "src/report/sections.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

Heads collect_heads(const Run& run) {
  Heads heads;
  std::vector<std::size_t> positions;  // of the columns' stages
  for (std::size_t i = 0; i < run.stages.size(); ++i) {
    auto& stage = run.stages[i];
    auto& values = member(stage.result, "heads");
    if (stage.type == "score" && values.is_object()) {
      HeadColumn column;
      auto method = text_of(stage.result, "method");
      column.title = stage.name + (method.empty() || method == stage.name ? "" : " (" + method + ")");
      column.map.title = "Scores: " + column.title;
      column.map.unit = "importance, " + (method.empty() ? stage.name : method);
      bool negative = false, positive = false;
      for (auto& [name, unused] : values.items()) {
        if (auto value = number_of(values, name)) column.map.values[name] = *value;
        negative = negative || column.map.values[name] < 0;
        positive = positive || column.map.values[name] > 0;
      }
      column.map.diverging = negative && positive;
      column.map.reading = column.map.diverging ? "orange below 0, blue above" : "the darker, the more it matters";
      heads.columns.push_back(column);
      positions.push_back(i);
    } else if (stage.type == "ablate" && values.is_object() && !values.empty()) {
      HeadColumn column;
      column.metric = text_of(stage.result, "metric");
      column.title = stage.name + ": " + metric_title(column.metric) + " change";
      column.change = true;
      column.map.title = "What masking each head alone does to " + metric_title(column.metric) + ": " + stage.name;
      column.map.unit = "change of " + metric_title(column.metric);
      column.map.diverging = true;
      column.map.high_is_bad = less_is_better(column.metric);
      column.map.reading = "orange is worse, blue better, white no change";
      for (auto& [name, entry] : values.items()) {
        if (auto delta = number_of(entry, "delta")) column.map.values[name] = *delta;
      }
      heads.columns.push_back(column);
      positions.push_back(i);
    } else if (stage.type == "prune" || stage.type == "mask") {
      auto names = names_in(member(stage.result, stage.type == "prune" ? "removed" : "masked"));
      heads.removals.push_back(
          {i, stage.name, stage.type == "prune" ? "removed" : "masked", {names.begin(), names.end()}});
    }
    if (stage.type == "measure" && values.is_object()) {
      HeadNote roles{stage.name + ": role", {}};
      for (auto& [name, entry] : values.items()) {
        if (place_of(name)) heads.names.insert(name);
        if (auto role = text_of(entry, "role"); !role.empty()) roles.of[name] = role;
      }
      if (!roles.of.empty()) heads.notes.push_back(std::move(roles));
    }
    auto& kept = member(stage.result, "kept");
    for (auto& [stack, layers] : kept.items()) {
      if (!layers.is_array()) continue;
      for (std::size_t layer = 0; layer < layers.size(); ++layer) {
        if (!layers[layer].is_array()) continue;
        for (auto& head : layers[layer]) {
          if (head.is_number_integer()) heads.names.insert(stack + "." + std::to_string(layer) + "." + dump(head));
        }
      }
    }
  }
  for (auto& column : heads.columns) {
    for (auto& [name, value] : column.map.values) heads.names.insert(name);
  }
  for (auto& removal : heads.removals) heads.names.insert(removal.heads.begin(), removal.heads.end());
  for (auto& name : heads.names) {
    if (auto place = place_of(name)) heads.sizes.add(*place);
  }
  // A map shows what was gone before it, and crosses out what the next removal after it takes.
  for (std::size_t i = 0; i < heads.columns.size(); ++i) {
    auto& map = heads.columns[i].map;
    for (auto& removal : heads.removals) {
      if (removal.position < positions[i]) {
        for (auto& name : removal.heads) {
          if (!map.values.count(name)) map.gone.insert(name);
        }
        map.gone_by = removal.stage;
      } else if (map.crossed.empty()) {
        map.crossed = removal.heads;
        map.crossed_by = removal.stage;
      }
    }
  }
  return heads;
}

std::string head_maps(const Heads& heads) {
  std::string result;
  for (auto& column : heads.columns) result += column.map.html(heads.sizes);
  for (auto& removal : heads.removals) {
    auto left = heads.names.size() - removal.heads.size();
    result += kept_map(
        "Heads kept by " + removal.stage + ": " + std::to_string(left) + " of " + std::to_string(heads.names.size()),
        removal.heads, removal.verb + " by " + removal.stage, heads.sizes);
  }
  return result;
}

std::string heads_table(const Heads& heads) {
  std::vector<std::string> headers = {"head"};
  for (auto& column : heads.columns) headers.push_back(column.title);
  for (auto& note : heads.notes) headers.push_back(note.title);
  headers.push_back("state");
  auto stacks = heads.sizes.stacks();
  auto order = [&](const std::string& name) {
    auto place = place_of(name).value_or(HeadPlace{});  // what is no head's name comes last, by its text
    auto stack = std::find(stacks.begin(), stacks.end(), place.stack) - stacks.begin();
    return std::tuple(stack, place.layer, place.head, name);
  };
  auto before = [&](const std::string& a, const std::string& b) { return order(a) < order(b); };
  std::vector<std::string> names(heads.names.begin(), heads.names.end());
  std::sort(names.begin(), names.end(), before);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& name = names[i];
    auto head = text_cell(name);
    head.sort_key = std::to_string(i);
    Row row{{head}, head_anchor(name)};
    for (auto& column : heads.columns) {
      auto found = column.map.values.find(name);
      if (found == column.map.values.end()) {
        row.cells.emplace_back();
      } else {
        auto value = found->second;
        auto text = column.change           ? figure_signed(column.metric, value)
                    : column.metric.empty() ? significant(value, 3)
                                            : figure(column.metric, value);
        row.cells.push_back(number_cell(text, value));
      }
    }
    for (auto& note : heads.notes) {
      auto found = note.of.find(name);
      row.cells.push_back(text_cell(found == note.of.end() ? "" : found->second));
    }
    std::string state;
    for (auto& removal : heads.removals) {
      if (removal.heads.count(name)) state += (state.empty() ? "" : ", ") + removal.verb + " by " + removal.stage;
    }
    row.cells.push_back(text_cell(state.empty() && !heads.removals.empty() ? "kept" : state));
    rows.push_back(row);
  }
  auto table = html::table("Every head: what each stage says of it", headers, rows, true);
  return table.empty() ? "" : "<div class=\"tall\">" + table + "</div>\n";
}

std::string attention_data(const Run& run) {
  std::string result;
  for (auto& stage : run.stages) {
    auto& texts = member(stage.result, "texts");
    if (stage.type != "measure" || !texts.is_array() || texts.empty()) continue;
    result += html::data({{"texts", texts}, {"heads", member(stage.result, "heads")}}, "attention",
                         " data-stage=\"" + html::escape(stage.name) + "\"");
  }
  return result;
}

std::string sets_tables(const Run& run) {
  std::string result;
  for (auto& stage : run.stages) {
    auto& sets = member(stage.result, "sets");
    if (stage.type != "ablate" || !sets.is_array()) continue;
    auto metric = text_of(stage.result, "metric");
    std::vector<Row> rows;
    for (auto& set : sets) {
      auto names = names_in(member(set, "heads"));
      std::string list;
      for (auto& name : names) list += (list.empty() ? "" : ", ") + name;
      auto value = number_of(set, metric), delta = number_of(set, "delta"), base = number_of(stage.result, "baseline");
      if (!delta && value && base) delta = *value - *base;
      rows.push_back(
          {{text_cell(text_of(set, "name")), count_cell(static_cast<double>(names.size())), figure_cell(metric, value),
            delta ? number_cell(figure_signed(metric, *delta), *delta) : Cell{}, text_cell(list)}});
    }
    auto base = number_of(stage.result, "baseline");
    result += html::table(stage.name + ": sets of heads masked together" +
                              (base ? "; without a mask " + metric_title(metric) + " " + figure(metric, *base) : ""),
                          {"set", "size", metric_title(metric), "change", "heads"}, rows, true);
  }
  return result;
}

}  // namespace headlab::report
