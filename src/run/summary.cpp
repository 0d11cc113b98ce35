#include "src/run/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "src/report/figures.h"
#include "src/terminal/format.h"
#include "src/terminal/table.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

struct Found {
  std::string stage, measure;
  std::optional<double> at;
  std::string metric, method;
  double value;
};
using FoundPlace = std::tuple<std::string, std::string, std::optional<double>>;  // stage, measure, at

/// A number; JSON has null for what is none.
std::optional<double> measured(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_null()) return std::nan("");
  return found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

/// What chose the heads of a curve.
std::string method_of(const Json& curve, const Json& stages) {
  const auto scores = curve.value("scores", "");
  auto method = stages.contains(scores) ? stages.at(scores).value("method", "") : "";
  if (method.empty()) method = scores;
  if (curve.value("highest", false)) method += ", highest first";
  if (const auto scope = curve.value("scope", "global"); scope != "global") method += ", by " + scope;
  for (const auto& stack : curve.value("stacks", Json::array())) method += ", " + stack.get<std::string>();
  return method;
}

void numbers_of(const Json& stage, const std::string& name, const Json& stages, std::vector<Found>& found) {
  if (stage.contains("metrics"))
    for (const auto& [metric, value] : stage.at("metrics").items())
      if (const auto number = measured(stage.at("metrics"), metric))
        found.push_back({name, metric, std::nullopt, "", "", *number});
  for (const auto& [key, value] : stage.items())
    if (value.is_number()) found.push_back({name, key, std::nullopt, "", "", value.get<double>()});
  if (!stage.contains("points")) return;
  const auto metric = stage.value("metric", ""), method = method_of(stage, stages);
  for (const auto& point : stage.at("points")) {
    const auto at = measured(point, "fraction");
    if (!at) continue;
    for (const auto* key : {"heads_kept", "value"})
      if (const auto number = measured(point, key)) found.push_back({name, key, at, metric, method, *number});
    if (!point.contains("random")) continue;
    if (const auto mean = measured(point.at("random"), "mean"))
      found.push_back({name, "random", at, metric, method, *mean});
  }
}

std::vector<Found> numbers_of(const Json& results) {
  std::vector<Found> found;
  const auto& stages = results.at("stages");
  for (const auto& [name, stage] : stages.items()) {
    numbers_of(stage, name, stages, found);
    if (!stage.contains("runs")) continue;
    std::vector<Found> all;  // of every repetition
    for (const auto& repetition : stage.at("runs"))
      for (const auto& [inner_name, inner] : repetition.items())
        numbers_of(inner, name + "/" + inner_name, repetition, all);
    std::vector<std::pair<Found, std::vector<double>>> by_place;
    std::map<FoundPlace, std::size_t> places;
    for (const auto& one : all) {
      const auto [place, added] = places.emplace(FoundPlace{one.stage, one.measure, one.at}, by_place.size());
      if (added) by_place.push_back({one, {}});
      by_place[place->second].second.push_back(one.value);
    }
    for (auto& [one, values] : by_place) {
      one.value = mean_interval(values).mean;
      found.push_back(one);
    }
  }
  return found;
}

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string exact(double value) { return std::isfinite(value) ? Json(value).dump() : fixed(value, 0); }

/// "82.7 ± 0.6", or of one seed its value.
std::string cell_of(const SummaryRow& row, const std::string& metric) {
  const auto& [mean, low, high] = row.interval;
  return figure(metric, mean) + (row.values.size() < 2 ? "" : " ± " + figure(metric, (high - low) / 2));
}

/// Names as they first come, each once.
class Names {
 public:
  void add(const std::string& name) {
    if (known_.insert(name).second) all_.push_back(name);
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::set<std::string> known_;
  std::vector<std::string> all_;
};

}  // namespace

std::vector<SummaryRow> summarised(const std::vector<RunVariant>& variants, const std::vector<RunOutcome>& runs) {
  std::vector<SummaryRow> rows;
  std::map<std::pair<std::string, FoundPlace>, std::size_t> places;
  for (std::size_t i = 0; i < variants.size(); ++i)
    for (const auto& found : numbers_of(runs[i].results)) {
      const auto [place, added] =
          places.emplace(std::pair(variants[i].group, FoundPlace{found.stage, found.measure, found.at}), rows.size());
      if (added)
        rows.push_back({variants[i].group, found.stage, found.measure, found.at, found.metric, found.method, {}, {}});
      rows[place->second].values.push_back(found.value);
    }
  for (auto& row : rows) row.interval = mean_interval(row.values);
  return rows;
}

Json to_json(const std::vector<SummaryRow>& rows) {
  auto json = Json::array();
  for (const auto& row : rows) {
    Json one{{"group", row.group}, {"stage", row.stage}, {"measure", row.measure}};
    if (row.at) one.update(Json{{"at", *row.at}, {"metric", row.metric}, {"method", row.method}});
    one.update(Json{
        {"mean", row.interval.mean}, {"low", row.interval.low}, {"high", row.interval.high}, {"values", row.values}});
    json.push_back(std::move(one));
  }
  return json;
}

std::string to_csv(const std::vector<SummaryRow>& rows) {
  std::string text = "group,stage,measure,at,mean,low,high,seeds,metric,method\n";
  for (const auto& row : rows)
    text += quoted_cell(row.group) + "," + quoted_cell(row.stage) + "," + quoted_cell(row.measure) + "," +
            (row.at ? exact(*row.at) : "") + "," + exact(row.interval.mean) + "," + exact(row.interval.low) + "," +
            exact(row.interval.high) + "," + std::to_string(row.values.size()) + "," + quoted_cell(row.metric) + "," +
            quoted_cell(row.method) + "\n";
  return text;
}

std::string summary_text(const std::vector<SummaryRow>& rows, const std::vector<RunOutcome>& runs, int64_t columns) {
  // What is told to a person: of the others there are too many.
  std::vector<std::pair<std::string, std::string>> metrics;  // {stage, metric}, as they first come
  std::set<std::pair<std::string, std::string>> known;
  const auto look = [&](const std::string& name, const Json& stage) {
    if (stage.contains("metrics"))
      for (const auto& [metric, value] : stage.at("metrics").items())
        if (known.insert({name, metric}).second) metrics.emplace_back(name, metric);
  };
  for (const auto& run : runs)
    for (const auto& [name, stage] : run.results.at("stages").items()) {
      look(name, stage);
      if (stage.contains("runs"))
        for (const auto& repetition : stage.at("runs"))
          for (const auto& [inner, of_inner] : repetition.items()) look(name + "/" + inner, of_inner);
    }
  Names groups, of_curves;
  std::map<std::pair<std::string, FoundPlace>, const SummaryRow*> by_place;
  std::map<std::string, Names> stages;  // of curves, by metric
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const SummaryRow*>>
      points;  // by metric, group, stage
  bool seeds = false;
  for (const auto& row : rows) {
    groups.add(row.group);
    by_place[{row.group, {row.stage, row.measure, row.at}}] = &row;
    seeds = seeds || row.values.size() > 1;
    if (!row.at || row.measure != "value") continue;
    of_curves.add(row.metric);
    stages[row.metric].add(row.stage);
    points[{row.metric, row.group, row.stage}].push_back(&row);
  }
  const auto row_of = [&](const std::string& group, const std::string& stage, const std::string& measure,
                          std::optional<double> at) {
    const auto found = by_place.find({group, {stage, measure, at}});
    return found == by_place.end() ? nullptr : found->second;
  };
  const bool named = groups.all().size() > 1 || (groups.all().size() == 1 && !groups.all().front().empty());
  Table measured_table{{}, {}};  // a row a group, a column a metric
  if (named) measured_table.header.push_back("");
  for (const auto& [stage, metric] : metrics) measured_table.header.push_back(stage + " " + metric);
  for (const auto& group : groups.all()) {
    std::vector<std::string> cells;
    if (named) cells.push_back(group);
    for (const auto& [stage, metric] : metrics) {
      const auto* row = row_of(group, stage, metric, std::nullopt);
      cells.push_back(row ? cell_of(*row, metric) : "");
    }
    measured_table.rows.push_back(std::move(cells));
  }
  std::string text = seeds ? "  mean ± half of its 95 % interval (Student's t over the seeds)\n" : "";
  if (!metrics.empty()) text += measured_table.text(columns);
  for (const auto& metric : of_curves.all()) {
    Table curves{{}, {}};  // a row a group, method and fraction
    if (named) curves.header.push_back("");
    curves.header.insert(curves.header.end(), {"curve", "masked", "kept", metric, "at random"});
    for (const auto& group : groups.all())
      for (const auto& stage : stages[metric].all())
        for (const auto* row : points[{metric, group, stage}]) {
          const auto* kept = row_of(group, stage, "heads_kept", row->at);
          const auto* random = row_of(group, stage, "random", row->at);
          std::vector<std::string> cells;
          if (named) cells.push_back(group);
          cells.insert(cells.end(),
                       {stage + (row->method.empty() || row->method == stage ? "" : " (" + row->method + ")"),
                        fixed(100 * *row->at, 0) + " %", kept ? significant(kept->interval.mean, 4) : "",
                        cell_of(*row, metric), random ? cell_of(*random, metric) : ""});
          curves.rows.push_back(std::move(cells));
        }
    text += curves.text(columns);
  }
  return text;
}

}  // namespace headlab
