#include "src/report/run_view.h"

#include <cmath>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::escape;
using html::number_cell;

namespace {

const json nothing = json::object();

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

}  // namespace

const json& member(const json& object, const std::string& key) {
  if (!object.is_object()) return nothing;
  auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_of(const json& object, const std::string& key) {
  auto& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
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

std::string facts(const json& value) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (value.is_object()) plain_values(value, "", pairs);
  if (pairs.empty()) return "";
  std::string result = "<dl class=\"facts\">";
  for (auto& [key, text] : pairs) result += "<dt>" + escape(key) + "</dt><dd>" + escape(text) + "</dd>\n";
  return result + "</dl>\n";
}

}  // namespace headlab::report
