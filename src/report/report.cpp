#include "src/report/report.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "src/report/chart.h"
#include "src/report/figures.h"
#include "src/report/head_map.h"
#include "src/report/html.h"
#include "src/report/page.h"
#include "src/terminal/format.h"

namespace headlab {
namespace {

using json = nlohmann::ordered_json;
using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

const json nothing = json::object();

const json& member(const json& object, const std::string& key) {
  if (!object.is_object()) return nothing;
  auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_of(const json& object, const std::string& key) {
  auto& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// A number; JSON has no NaN, so that a key with null stands for it.
template <class Json>
std::optional<double> number_of(const Json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  auto& value = object.at(key);
  if (value.is_number()) return value.template get<double>();
  return value.is_null() ? std::optional<double>(std::nan("")) : std::nullopt;
}

std::vector<std::string> names_in(const json& list) {
  std::vector<std::string> names;
  if (!list.is_array()) return names;
  for (auto& item : list) {
    if (item.is_string()) names.push_back(item.get<std::string>());
  }
  return names;
}

Cell count_cell(std::optional<double> value) {
  return value ? number_cell(std::isfinite(*value) ? with_commas(std::llround(*value)) : "nan", *value) : Cell{};
}

Cell figure_cell(const std::string& metric, std::optional<double> value) {
  return value ? number_cell(figure(metric, *value), *value) : Cell{};
}

struct Stage {
  std::string name, type;
  const json& result;
};

/// Everything the parts of the page are made from.
struct Run {
  Run(const json& results, const std::vector<nlohmann::json>& metrics, const json& spec, const json& environment)
      : results(results), metrics(metrics), spec(spec), environment(environment) {
    auto& all = member(results, "stages");
    if (!all.is_object()) return;
    for (auto& [name, result] : all.items()) stages.push_back({name, text_of(result, "type"), result});
  }
  const json& results;
  const std::vector<nlohmann::json>& metrics;
  const json &spec, &environment;
  std::vector<Stage> stages;
};

// ---------------------------------------------------------------------------------------------------- question,
// verdicts

constexpr std::pair<const char*, const char*> relations[] = {
    {"at_least", "≥"}, {"at_most", "≤"}, {"above", ">"}, {"below", "<"}, {"equals", "="}};

std::string relation_sign(const std::string& relation) {
  for (auto& [name, sign] : relations) {
    if (relation == name) return sign;
  }
  return relation;
}

/// "bleu" of "pruned.bleu", "mean(random.bleu)" and "full.bleu - 3": the name after the first dot.
std::string metric_of(const std::string& expression) {
  auto begin = expression.find('.') + 1;  // the whole where there is no dot
  auto end = std::find_if_not(expression.begin() + static_cast<std::ptrdiff_t>(begin), expression.end(),
                              [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  return {expression.begin() + static_cast<std::ptrdiff_t>(begin), end};
}

std::string verdicts(const Run& run) {
  auto& claims = member(run.results, "expect");
  if (!claims.is_array() || claims.empty()) return "";
  std::string items;
  int64_t holding = 0;
  for (auto& claim : claims) {
    bool holds = member(claim, "holds") == true;
    holding += holds;
    auto that = text_of(claim, "that"), bound = text_of(claim, "bound");
    if (bound.empty() && member(claim, "bound").is_number()) bound = dump(member(claim, "bound"));
    auto sign = relation_sign(text_of(claim, "relation"));
    auto side = [&](const char* key) {
      auto value = number_of(claim, key);
      return value ? figure(metric_of(that), *value) : std::string("?");
    };
    auto left = side("left"), right = side("right");
    if (left == right) {  // the digits of the metric hide the difference
      auto exact = [&](const char* key) { return significant(number_of(claim, key).value_or(std::nan("")), 8); };
      left = exact("left");
      right = exact("right");
    }
    auto within = number_of(claim, "within");
    items += std::string("<li class=\"") + (holds ? "holds" : "fails") + "\"><b>" +
             (holds ? "✓ holds" : "✗ does not hold") + "</b><span>" + escape(text_of(claim, "claim")) +
             "</span><span class=\"numbers\">" + escape(left + " " + sign + " " + right) + "</span><code>" +
             escape(that + " " + sign + " " + bound + (within ? " (within " + significant(*within, 4) + ")" : "")) +
             "</code></li>\n";
  }
  auto total = static_cast<int64_t>(claims.size());
  auto answer = total == 1 ? (holding ? "The claim holds." : "The claim does not hold.")
                : holding == total ? "All " + std::to_string(total) + " claims hold."
                : holding == 0     ? "None of the " + std::to_string(total) + " claims holds."
                                   : std::to_string(holding) + " of " + std::to_string(total) + " claims hold.";
  return "<p>" + answer + "</p>\n<ul class=\"verdicts\">\n" + items + "</ul>\n";
}

std::string head_of_page(const Run& run) {
  auto name = text_of(run.results, "name"), question = text_of(run.results, "question");
  std::vector<std::string> facts = {name, text_of(run.results, "label"), text_of(run.results, "id")};
  auto device = text_of(run.environment, "device");
  if (!device.empty()) facts.push_back(device);
  if (auto threads = number_of(run.environment, "threads")) facts.push_back(significant(*threads, 6) + " threads");
  if (auto& seed = member(run.results, "seed"); seed.is_number()) facts.push_back("seed " + dump(seed));
  if (auto seconds = number_of(run.results, "seconds")) facts.push_back(duration(*seconds));
  std::string line;
  for (auto& fact : facts) {
    if (!fact.empty()) line += (line.empty() ? "" : " · ") + fact;
  }
  return "<header><p class=\"run\">" + escape(line) + "</p>\n<h1>" + escape(question.empty() ? name : question) +
         "</h1>\n" + verdicts(run) + "</header>\n";
}

// ------------------------------------------------------------------------------------------------------------ results

/// The values of one thing over repetitions.
struct Spread {
  std::vector<double> values;
  double mean() const {
    double sum = 0;
    for (auto value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
};

/// One line of the table of results: a stage, or the same stage of all repetitions.
struct Evaluated {
  std::string name;
  const json* first = nullptr;
  int64_t runs = 1;
  std::map<std::string, Spread> metrics, plain;
};

void add_values(Evaluated& to, const json& result) {
  if (!to.first) to.first = &result;
  auto& metrics = member(result, "metrics");
  for (auto& [metric, value] : metrics.items()) {
    if (auto number = number_of(metrics, metric)) to.metrics[metric].values.push_back(*number);
  }
  for (auto* key : {"heads", "parameters", "seconds"}) {
    if (auto number = number_of(result, key)) to.plain[key].values.push_back(*number);
  }
}

std::vector<Evaluated> evaluated(const Run& run) {
  std::vector<Evaluated> rows;
  for (auto& stage : run.stages) {
    if (stage.type == "evaluate") {
      rows.push_back({stage.name, nullptr, 1, {}, {}});
      add_values(rows.back(), stage.result);
    }
    auto& runs = member(stage.result, "runs");
    if (stage.type != "repeat" || !runs.is_array()) continue;
    std::vector<Evaluated> repeated;
    for (auto& one : runs) {
      if (!one.is_object()) continue;
      for (auto& [name, result] : one.items()) {
        if (text_of(result, "type") != "evaluate") continue;
        auto full = stage.name + "/" + name;
        auto found = std::find_if(repeated.begin(), repeated.end(), [&](auto& row) { return row.name == full; });
        if (found == repeated.end()) found = repeated.insert(repeated.end(), Evaluated{full, nullptr, 0, {}, {}});
        ++found->runs;
        add_values(*found, result);
      }
    }
    rows.insert(rows.end(), repeated.begin(), repeated.end());
  }
  return rows;
}

/// "41.9" or, of repetitions, "41.9 (38.0 to 44.1)".
Cell spread_cell(const Spread& spread, const std::function<std::string(double)>& text) {
  if (spread.values.empty()) return {};
  auto cell = number_cell(text(spread.mean()), spread.mean());
  auto [low, high] = std::minmax_element(spread.values.begin(), spread.values.end());
  if (*low != *high) {
    cell.content += " <span class=\"range\">(" + escape(text(*low) + " to " + text(*high)) + ")</span>";
  }
  return cell;
}

std::string results_table(const Run& run) {
  auto rows = evaluated(run);
  std::vector<std::string> metrics;
  std::vector<std::pair<std::string, std::string>> signatures;  // metric, signature
  for (auto& row : rows) {
    for (auto& [metric, value] : member(*row.first, "metrics").items()) {
      if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
    }
    for (auto& [metric, signature] : member(*row.first, "signature").items()) {
      if (!signature.is_string()) continue;
      std::pair<std::string, std::string> item{metric, signature.get<std::string>()};
      if (std::find(signatures.begin(), signatures.end(), item) == signatures.end()) signatures.push_back(item);
    }
  }
  std::vector<std::string> headers = {"model", "split"};
  for (auto& metric : metrics)
    headers.push_back(metric_title(metric) + (less_is_better(metric) ? " (less is better)" : ""));
  headers.insert(headers.end(), {"heads", "parameters", "time"});
  bool repeated = false;
  std::vector<Row> table;
  for (auto& row : rows) {
    repeated = repeated || row.runs > 1;
    Row line;
    auto name = text_cell(row.name);
    if (row.runs > 1) name.content += " <span class=\"range\">mean of " + std::to_string(row.runs) + "</span>";
    line.cells = {name, text_cell(text_of(*row.first, "split"))};
    for (auto& metric : metrics) {
      line.cells.push_back(spread_cell(row.metrics[metric], [&](double value) { return figure(metric, value); }));
    }
    auto count = [](double value) { return std::isfinite(value) ? with_commas(std::llround(value)) : "nan"; };
    line.cells.push_back(spread_cell(row.plain["heads"], count));
    line.cells.push_back(spread_cell(row.plain["parameters"], count));
    line.cells.push_back(spread_cell(row.plain["seconds"], duration));
    table.push_back(line);
  }
  std::string notes;
  for (auto& [metric, signature] : signatures) {
    notes += "<p class=\"soft\">" + escape(metric_title(metric)) + ": <code>" + escape(signature) + "</code></p>\n";
  }
  return html::table(repeated ? "Evaluations; of repetitions the mean (lowest to highest)" : "Evaluations",
                     headers, table) + notes;
}

// ------------------------------------------------------------------------------------------------------------- curves

/// "random-3/train" is one of the repetitions of "random/train".
std::string without_number(const std::string& stage) {
  auto slash = stage.find('/');
  auto dash = stage.rfind('-', slash);
  if (slash == std::string::npos || dash == std::string::npos) return stage;
  bool digits = dash + 1 < slash && std::all_of(stage.begin() + static_cast<std::ptrdiff_t>(dash + 1),
                                                stage.begin() + static_cast<std::ptrdiff_t>(slash),
                                                [](unsigned char c) { return c >= '0' && c <= '9'; });
  return digits ? stage.substr(0, dash) + stage.substr(slash) : stage;
}

using Points = std::vector<std::pair<double, double>>;

struct Series {
  std::string name;                       // of the stage in `metrics`
  std::map<std::string, Points> trained, valid;  // by quantity
};

constexpr std::pair<const char*, const char*> quantities[] = {
    {"loss", "loss (nats a token)"}, {"lr", "learning rate"}, {"grad_norm", "gradient norm, before clipping"}};

Chart::Line line(const std::string& name, const Points& points, int colour, bool dashed, bool faint) {
  return {name, points, colour, dashed, faint, points.size() < 2};
}

std::string curves(const Run& run) {
  std::vector<std::pair<std::string, std::vector<Series>>> groups;  // stages; of repetitions all
  for (auto& row : run.metrics) {
    auto step = number_of(row, "step");
    if (!step || !row.contains("stage") || !row["stage"].is_string()) continue;
    auto name = row["stage"].get<std::string>(), group_name = without_number(name);
    auto same = [&](auto& group) { return group.first == group_name; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), {group_name, {}});
    auto series = std::find_if(group->second.begin(), group->second.end(), [&](auto& one) { return one.name == name; });
    if (series == group->second.end()) series = group->second.insert(group->second.end(), Series{name, {}, {}});
    for (auto& [quantity, title] : quantities) {
      if (auto value = number_of(row, quantity)) series->trained[quantity].emplace_back(*step, *value);
    }
    if (!row.contains("valid") || !row["valid"].is_object()) continue;
    for (auto& [metric, unused] : row["valid"].items()) {
      if (auto value = number_of(row["valid"], metric)) series->valid[metric].emplace_back(*step, *value);
    }
  }
  std::string result;
  for (auto& [name, all] : groups) {
    bool faint = all.size() > 1;
    std::string charts;
    for (auto& [quantity, title] : quantities) {
      Chart chart{title, "step", {}, {}};
      for (auto& series : all) {
        if (series.trained.count(quantity)) {
          chart.lines.push_back(line("training", series.trained[quantity], 0, false, faint));
        }
        if (std::string(quantity) == "loss" && series.valid.count(quantity)) {
          chart.lines.push_back(line("validation", series.valid[quantity], 1, true, faint));
        }
      }
      charts += chart.html();
    }
    std::set<std::string> metrics;
    for (auto& series : all) {
      for (auto& [metric, points] : series.valid) metrics.insert(metric);
    }
    metrics.erase("loss");
    for (auto& metric : metrics) {
      Chart chart{"validation " + metric_title(metric), "step", {}, {}};
      for (auto& series : all) {
        if (series.valid.count(metric)) chart.lines.push_back(line("validation", series.valid[metric], 1, true, faint));
      }
      charts += chart.html();
    }
    if (charts.empty()) continue;
    auto title = name + (faint ? ", " + std::to_string(all.size()) + " repetitions" : "");
    auto content = "<div class=\"charts\">" + charts + "</div>\n";
    result += faint ? html::details(title, content) : "<h3>" + escape(title) + "</h3>\n" + content;
  }
  return result;
}

// -------------------------------------------------------------------------------------------------------------- heads

/// A column of the table of heads, and a map: what a stage says of each head.
struct HeadColumn {
  std::string title;   // in the table
  std::string metric;  // whose digits its values have; empty: four digits
  bool change = false;
  HeadMap map;
};

/// A stage that takes heads away, and when.
struct Removal {
  std::size_t position;  // among the stages
  std::string stage, verb;
  std::set<std::string> heads;
};

struct Heads {
  std::vector<HeadColumn> columns;
  std::vector<Removal> removals;
  std::set<std::string> names;
  StackSizes sizes;
};

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
    result += kept_map("Heads kept by " + removal.stage + ": " + std::to_string(left) + " of " +
                           std::to_string(heads.names.size()),
                       removal.heads, removal.verb + " by " + removal.stage, heads.sizes);
  }
  return result;
}

std::string heads_table(const Heads& heads) {
  std::vector<std::string> headers = {"head"};
  for (auto& column : heads.columns) headers.push_back(column.title);
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
        auto text = column.change            ? figure_signed(column.metric, value)
                    : column.metric.empty() ? significant(value, 3)
                                            : figure(column.metric, value);
        row.cells.push_back(number_cell(text, value));
      }
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
      rows.push_back({{text_cell(text_of(set, "name")), count_cell(static_cast<double>(names.size())),
                       figure_cell(metric, value),
                       delta ? number_cell(figure_signed(metric, *delta), *delta) : Cell{}, text_cell(list)}});
    }
    auto base = number_of(stage.result, "baseline");
    result += html::table(stage.name + ": sets of heads masked together" +
                              (base ? "; without a mask " + metric_title(metric) + " " + figure(metric, *base) : ""),
                          {"set", "size", metric_title(metric), "change", "heads"}, rows, true);
  }
  return result;
}

std::string pruning_curves(const Run& run) {
  std::string result;
  for (auto& stage : run.stages) {
    auto& points = member(stage.result, "points");
    if (stage.type != "curve" || !points.is_array()) continue;
    auto metric = text_of(stage.result, "metric");
    auto title = metric_title(metric);
    struct Point {
      double heads;
      std::optional<double> value, mean, low, high;
    };
    std::vector<Point> all;
    std::size_t draws = 0;
    for (auto& point : points) {
      auto heads = number_of(point, "heads_kept");
      if (!heads || !std::isfinite(*heads)) continue;
      auto& random = member(point, "random");
      all.push_back({*heads, number_of(point, "value"), number_of(random, "mean"), number_of(random, "low"),
                     number_of(random, "high")});
      if (member(random, "values").is_array()) draws = std::max(draws, member(random, "values").size());
    }
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.heads < b.heads; });
    auto sets = draws > 0 ? std::to_string(draws) + " random sets" : std::string("random sets");
    Chart::Line chosen{"by score", {}, 0, false, false, true}, mean{"mean of " + sets, {}, 1, true, false, true};
    Chart::Band band{"lowest to highest of them", {}, 1};
    std::vector<Row> rows;
    for (auto& point : all) {
      if (point.value) chosen.points.emplace_back(point.heads, *point.value);
      if (point.mean) mean.points.emplace_back(point.heads, *point.mean);
      bool ranged = point.low && point.high && std::isfinite(*point.low) && std::isfinite(*point.high);
      if (ranged) band.ranges.push_back({point.heads, *point.low, *point.high});
      rows.push_back({{count_cell(point.heads), figure_cell(metric, point.value), figure_cell(metric, point.mean),
                       figure_cell(metric, point.low), figure_cell(metric, point.high)}});
    }
    auto scores = text_of(stage.result, "scores");
    if (!scores.empty()) chosen.name = "lowest scores first (" + scores + ")";
    Chart chart{stage.name + ": " + title, "heads kept", {chosen}, {}};
    if (!mean.points.empty()) chart.lines.push_back(mean);
    if (!band.ranges.empty()) chart.bands.push_back(band);
    result += chart.html() + html::details("The values", html::table(stage.name + ": " + title + " against heads kept",
                                                                      {"heads kept", title, "random: mean", "lowest",
                                                                       "highest"},
                                                                      rows));
  }
  return result;
}

// ------------------------------------------------------------------------------------------------------------ samples

std::string samples(const Run& run) {
  struct Sample {
    std::string source, reference;
    std::vector<std::pair<std::string, std::string>> outputs;  // stage, text
  };
  std::vector<Sample> all;
  for (auto& stage : run.stages) {
    auto& list = member(stage.result, "samples");
    if (!list.is_array()) continue;
    for (auto& item : list) {
      auto source = text_of(item, "source"), reference = text_of(item, "reference");
      auto found = std::find_if(all.begin(), all.end(), [&](auto& sample) {
        return sample.source == source && sample.reference == reference;
      });
      if (found == all.end()) found = all.insert(all.end(), Sample{source, reference, {}});
      found->outputs.emplace_back(stage.name, text_of(item, "hypothesis"));
    }
  }
  if (all.empty()) return "";
  std::string result = "<div class=\"samples\">\n";
  auto line = [&](const std::string& label, const std::string& text, const std::string& note) {
    result += "<dt>" + escape(label) + "</dt><dd dir=\"auto\">" + escape(text) +
              (note.empty() ? "" : " <span class=\"same\">" + note + "</span>") + "</dd>\n";
  };
  for (auto& sample : all) {
    result += "<dl class=\"sample\">\n";
    line("source", sample.source, "");
    if (!sample.reference.empty()) line("reference", sample.reference, "");
    for (auto& [stage, text] : sample.outputs) line(stage, text, text == sample.reference ? "= reference" : "");
    result += "</dl>\n";
  }
  return result + "</div>\n";
}

// --------------------------------------------------------------------------------------------- cost, the rest, repeat

std::string cost(const Run& run) {
  std::vector<Row> rows;
  for (auto& stage : run.stages) {
    auto& result = stage.result;
    auto seconds = number_of(result, "wall_seconds");
    if (!seconds) seconds = number_of(result, "seconds");
    auto rate = number_of(result, "tokens_per_s");
    auto tokens = number_of(result, "tokens"), trained = number_of(result, "seconds");
    if (!rate && tokens && trained && *trained > 0) rate = *tokens / *trained;
    auto change = [&](const std::string& what) {
      auto before = number_of(result, what + "_before"), after = number_of(result, what + "_after");
      if (!before || !after) {
        auto now = number_of(result, what);
        return now ? count_cell(now) : Cell{};
      }
      auto cell = number_cell(with_commas(std::llround(*before)) + " → " + with_commas(std::llround(*after)), *after);
      auto share = 100 * (*after - *before) / *before;
      if (*before > 0 && *after != *before) {
        cell.content += " <span class=\"range\">(" + fixed_signed(share, 0) + " %)</span>";
      }
      return cell;
    };
    rows.push_back(
        {{text_cell(stage.name), text_cell(stage.type), seconds ? number_cell(duration(*seconds), *seconds) : Cell{},
          count_cell(number_of(result, "steps")), count_cell(tokens),
          rate ? number_cell(short_number(*rate), *rate) : Cell{}, change("heads"), change("parameters"),
          change("flops"), change("bytes")}});
  }
  if (auto seconds = number_of(run.results, "seconds"); seconds && !rows.empty()) {
    rows.push_back({{text_cell("in all"), Cell{}, number_cell(duration(*seconds), *seconds)}});
  }
  return html::table("Stages and what they took",
                     {"stage", "type", "time", "steps", "tokens", "tokens/s", "heads", "parameters",
                      "FLOPs a token", "bytes"},
                     rows);
}

/// Plain values, those of inner objects by their path.
void plain_values(const json& value, const std::string& path, std::vector<std::pair<std::string, std::string>>& to) {
  if (value.is_object()) {
    for (auto& [key, item] : value.items()) plain_values(item, path.empty() ? key : path + "." + key, to);
  } else if (value.is_string()) {
    to.emplace_back(path, value.get<std::string>());
  } else if (value.is_number_float()) {
    to.emplace_back(path, significant(value.get<double>(), 6));
  } else {
    to.emplace_back(path, dump(value));
  }
}

std::string facts(const json& value) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (value.is_object()) plain_values(value, "", pairs);
  if (pairs.empty()) return "";
  std::string result = "<dl class=\"facts\">";
  for (auto& [key, text] : pairs) result += "<dt>" + escape(key) + "</dt><dd>" + escape(text) + "</dd>\n";
  return result + "</dl>\n";
}

/// Stages that no other part of the page shows.
std::string other_stages(const Run& run) {
  static const std::set<std::string> shown = {"train", "evaluate", "score", "ablate",
                                              "prune", "mask",     "curve", "repeat"};
  std::string result;
  for (auto& stage : run.stages) {
    if (shown.count(stage.type)) continue;
    auto list = facts(stage.result);
    if (!list.empty()) result += "<h3>" + escape(stage.name) + "</h3>\n" + list;
  }
  return result;
}

std::string repetition(const Run& run) {
  std::string result;
  auto command = text_of(run.results, "command");
  if (!command.empty()) result += "<p>The command:</p>\n<pre><code>" + escape(command) + "</code></pre>\n";
  json seeds = json::object();
  if (run.results.contains("seed")) seeds["seed"] = run.results["seed"];
  auto environment = facts(seeds) + facts(run.environment);
  if (!environment.empty()) result += "<h3>Environment and seed</h3>\n" + environment;
  if (run.spec.is_object() && !run.spec.empty()) {
    result += html::details("The resolved spec", "<pre><code>" + escape(dump(run.spec, 2)) + "</code></pre>");
  }
  return result;
}

}  // namespace

std::string report_html(const json& results, const std::vector<nlohmann::json>& metrics, const json& spec,
                        const json& environment) {
  Run run(results.is_object() ? results : nothing, metrics, spec, environment);
  auto heads = collect_heads(run);
  struct Part {
    const char *id, *title;
    std::string content;
  };
  Part parts[] = {{"results", "Results", results_table(run)},
                  {"pruning", "Heads kept against quality", pruning_curves(run)},
                  {"curves", "Training", curves(run)},
                  {"maps", "Head maps", head_maps(heads)},
                  {"heads", "Heads one by one", heads_table(heads)},
                  {"sets", "Sets of heads", sets_tables(run)},
                  {"samples", "Samples", samples(run)},
                  {"cost", "Cost", cost(run)},
                  {"data", "Data", facts(member(run.results, "data"))},
                  {"other", "Other stages", other_stages(run)},
                  {"repeat", "How to repeat it", repetition(run)}};
  std::string body, links;
  for (auto& part : parts) {
    auto section = html::section(part.id, part.title, part.content);
    if (section.empty()) continue;
    body += section;
    links += "<a href=\"#" + std::string(part.id) + "\">" + escape(part.title) + "</a> ";
  }
  auto name = text_of(run.results, "name"), question = text_of(run.results, "question");
  auto title = name.empty() || question.empty() ? name + question : name + ": " + question;
  return page(title.empty() ? "headlab report" : title,
              head_of_page(run) + (links.empty() ? "" : "<nav aria-label=\"Parts of the page\">" + links + "</nav>\n") +
                  "<main>\n" + body + "</main>\n");
}

}  // namespace headlab
