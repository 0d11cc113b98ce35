#include "src/report/sections.h"

#include <algorithm>
#include <cmath>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

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
      auto found = std::find_if(all.begin(), all.end(),
                                [&](auto& sample) { return sample.source == source && sample.reference == reference; });
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
  return html::table(
      "Stages and what they took",
      {"stage", "type", "time", "steps", "tokens", "tokens/s", "heads", "parameters", "FLOPs a token", "bytes"}, rows);
}

/// Plain values, those of inner objects by their path.

namespace {

/// What a measure says of each head, where that is several plain values: a row a head.
std::string heads_in_detail(const Stage& stage) {
  auto& heads = member(stage.result, "heads");
  std::vector<std::string> keys;
  if (!heads.is_object()) return "";
  for (auto& [name, entry] : heads.items()) {
    if (!entry.is_object()) return "";
    for (auto& [key, value] : entry.items())
      if (value.is_primitive() && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  std::vector<std::string> headers{"head"};
  for (auto key : keys) {
    std::replace(key.begin(), key.end(), '_', ' ');
    headers.push_back(key);
  }
  std::vector<Row> rows;
  for (auto& [name, entry] : heads.items()) {
    Row row{{text_cell(name)}, ""};
    for (auto& key : keys) {
      auto value = number_of(entry, key);
      row.cells.push_back(value ? number_cell(significant(*value, 3), *value) : text_cell(text_of(entry, key)));
    }
    rows.push_back(std::move(row));
  }
  auto table = html::table(stage.name + ": every head", headers, rows, true);
  return table.empty() ? "" : "<div class=\"tall\">" + table + "</div>\n";
}

}  // namespace

std::string other_stages(const Run& run) {
  static const std::set<std::string> shown = {"train", "evaluate", "score", "ablate",
                                              "prune", "mask",     "curve", "repeat"};
  std::string result;
  for (auto& stage : run.stages) {
    if (shown.count(stage.type) || member(stage.result, "texts").is_array())
      continue;  // texts: what heads look at, in their panels
    auto rest = stage.result;
    auto of_heads = heads_in_detail(stage);
    if (!of_heads.empty()) rest.erase("heads");
    auto list = facts(rest) + of_heads;
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

}  // namespace headlab::report
