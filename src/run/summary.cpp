#include "src/run/summary.h"

#include <algorithm>

#include "src/report/figures.h"
#include "src/terminal/format.h"
#include "src/terminal/table.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

struct Found {
  std::string stage, measure;
  std::optional<double> at;
  double value;
};

void numbers_of(const Json& stage, const std::string& name, std::vector<Found>& found) {
  const auto add_all = [&](const Json& object) {
    for (const auto& [key, value] : object.items())
      if (value.is_number()) found.push_back({name, key, std::nullopt, value.get<double>()});
  };
  if (stage.contains("metrics")) add_all(stage.at("metrics"));
  add_all(stage);
  if (!stage.contains("points")) return;
  for (const auto& point : stage.at("points")) {
    const auto at = point.at("fraction").get<double>();
    for (const auto* key : {"heads_kept", "value"}) found.push_back({name, key, at, point.at(key).get<double>()});
    if (point.contains("random")) found.push_back({name, "random", at, point.at("random").at("mean").get<double>()});
  }
}

std::vector<Found> numbers_of(const Json& results) {
  std::vector<Found> found;
  for (const auto& [name, stage] : results.at("stages").items()) {
    numbers_of(stage, name, found);
    if (!stage.contains("runs")) continue;
    std::vector<Found> all;  // of every repetition
    for (const auto& repetition : stage.at("runs"))
      for (const auto& [inner_name, inner] : repetition.items()) numbers_of(inner, name + "/" + inner_name, all);
    std::vector<std::pair<Found, std::vector<double>>> by_place;
    for (const auto& one : all) {
      const auto same = [&](const auto& other) {
        return other.first.stage == one.stage && other.first.measure == one.measure && other.first.at == one.at;
      };
      auto place = std::find_if(by_place.begin(), by_place.end(), same);
      if (place == by_place.end()) place = by_place.insert(by_place.end(), {one, {}});
      place->second.push_back(one.value);
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

std::string exact(double value) { return Json(value).dump(); }

/// "82.7 (82.1 to 83.3)", or of one seed its value.
std::string cell_of(const SummaryRow& row, const std::string& metric) {
  const auto one = [&](double value) { return figure(metric, value); };
  const auto& [mean, low, high] = row.interval;
  return row.values.size() < 2 ? one(mean) : one(mean) + " (" + one(low) + " to " + one(high) + ")";
}

}  // namespace

std::vector<SummaryRow> summarised(const std::vector<RunVariant>& variants, const std::vector<RunOutcome>& runs) {
  std::vector<SummaryRow> rows;
  for (std::size_t i = 0; i < variants.size(); ++i)
    for (const auto& found : numbers_of(runs[i].results)) {
      const auto same = [&](const SummaryRow& row) {
        return row.group == variants[i].group && row.stage == found.stage && row.measure == found.measure && row.at == found.at;
      };
      auto row = std::find_if(rows.begin(), rows.end(), same);
      if (row == rows.end()) row = rows.insert(rows.end(), {variants[i].group, found.stage, found.measure, found.at, {}, {}});
      row->values.push_back(found.value);
    }
  for (auto& row : rows) row.interval = mean_interval(row.values);
  return rows;
}

Json to_json(const std::vector<SummaryRow>& rows) {
  auto json = Json::array();
  for (const auto& row : rows) {
    Json one{{"group", row.group}, {"stage", row.stage}, {"measure", row.measure}};
    if (row.at) one["at"] = *row.at;
    one.update(Json{{"mean", row.interval.mean}, {"low", row.interval.low}, {"high", row.interval.high}, {"values", row.values}});
    json.push_back(std::move(one));
  }
  return json;
}

std::string to_csv(const std::vector<SummaryRow>& rows) {
  std::string text = "group,stage,measure,at,mean,low,high,seeds\n";
  for (const auto& row : rows)
    text += quoted_cell(row.group) + "," + quoted_cell(row.stage) + "," + quoted_cell(row.measure) + "," + (row.at ? exact(*row.at) : "") + "," +
            exact(row.interval.mean) + "," + exact(row.interval.low) + "," + exact(row.interval.high) + "," + std::to_string(row.values.size()) + "\n";
  return text;
}

std::string summary_text(const std::vector<SummaryRow>& rows, const std::vector<RunOutcome>& runs, int64_t columns) {
  // What is told to a person: of the others there are too many.
  std::vector<std::pair<std::string, std::string>> metrics, curves;  // {stage, metric}, as they first come
  const auto add = [](auto& list, const std::string& stage, const std::string& metric) {
    if (std::find(list.begin(), list.end(), std::pair(stage, metric)) == list.end()) list.emplace_back(stage, metric);
  };
  const auto look = [&](const std::string& name, const Json& stage) {
    if (stage.contains("metrics"))
      for (const auto& [metric, value] : stage.at("metrics").items()) add(metrics, name, metric);
    if (stage.contains("points")) add(curves, name, stage.at("metric").get<std::string>());
  };
  for (const auto& run : runs)
    for (const auto& [name, stage] : run.results.at("stages").items()) {
      look(name, stage);
      if (stage.contains("runs"))
        for (const auto& repetition : stage.at("runs"))
          for (const auto& [inner, of_inner] : repetition.items()) look(name + "/" + inner, of_inner);
    }
  std::vector<std::string> groups;
  for (const auto& row : rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
  const auto row_of = [&](const std::string& group, const std::string& stage, const std::string& measure, std::optional<double> at) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SummaryRow& r) {
      return r.group == group && r.stage == stage && r.measure == measure && r.at == at;
    });
    return row == rows.end() ? nullptr : &*row;
  };
  Table measured{{""}, {}};  // a row a group, a column a metric
  for (const auto& [stage, metric] : metrics) measured.header.push_back(stage + " " + metric);
  for (const auto& group : groups) {
    std::vector<std::string> cells{group};
    for (const auto& [stage, metric] : metrics) {
      const auto* row = row_of(group, stage, metric, std::nullopt);
      cells.push_back(row ? cell_of(*row, metric) : "");
    }
    measured.rows.push_back(std::move(cells));
  }
  std::string text = metrics.empty() ? "" : measured.text(columns);
  for (const auto& [stage, metric] : curves) {
    Table curve{{stage, "masked", "heads kept", metric, "at random"}, {}};  // a row a point
    for (const auto& row : rows) {
      if (row.stage != stage || row.measure != "value" || !row.at) continue;
      const auto* kept = row_of(row.group, stage, "heads_kept", row.at);
      const auto* random = row_of(row.group, stage, "random", row.at);
      curve.rows.push_back({row.group, fixed(100 * *row.at, 0) + " %", kept ? significant(kept->interval.mean, 4) : "", cell_of(row, metric),
                            random ? cell_of(*random, metric) : ""});
    }
    text += curve.text(columns);
  }
  return text;
}

}  // namespace headlab
