#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/report/html.h"

/// What the sections of the report read a run by.
namespace headlab::report {

using json = nlohmann::ordered_json;
using html::Cell;

/// The value of a key; an empty object where there is none, or where `object` is no object.
const json& member(const json& object, const std::string& key);
/// A string value; empty where there is none.
std::string text_of(const json& object, const std::string& key);
/// As JSON text, whatever bytes it holds.
std::string dump(const json& value, int indent = -1);

template <class Json>
std::optional<double> number_of(const Json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  auto& value = object.at(key);
  if (value.is_number()) return value.template get<double>();
  return value.is_null() ? std::optional<double>(std::nan("")) : std::nullopt;
}

std::vector<std::string> names_in(const json& list);
Cell count_cell(std::optional<double> value);
Cell figure_cell(const std::string& metric, std::optional<double> value);
/// An object's values as a list of name and text; nested ones by their path.
std::string facts(const json& value);

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

}  // namespace headlab::report
