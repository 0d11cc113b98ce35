#include "src/train/parameter_names.h"

#include <algorithm>
#include <set>

#include "modules/base/error.h"
#include "modules/base/nearest.h"

namespace headlab {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts{""};
  for (const char c : name) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// `*` stands for any letters.
bool glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*')
    return !text.empty() && pattern.front() == text.front() && glob(pattern.substr(1), text.substr(1));
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (glob(pattern.substr(1), text.substr(skipped))) return true;
  return false;
}

bool part_matches(const std::string& pattern, const std::string& part) {
  if (pattern.find('*') != std::string::npos) return glob(pattern, part);
  if (pattern == part) return true;
  return part.size() > pattern.size() && part[part.size() - pattern.size() - 1] == '_' &&
         part.compare(part.size() - pattern.size(), pattern.size(), pattern) == 0;
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return name_matches(pattern, name); });
}

}  // namespace

bool name_matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return false;
  if (pattern == "*") return true;
  const auto wanted = parts_of(pattern), parts = parts_of(name);
  for (std::size_t first = 0; first + wanted.size() <= parts.size(); ++first) {
    std::size_t same = 0;
    while (same < wanted.size() && part_matches(wanted[same], parts[first + same])) ++same;
    if (same == wanted.size()) return true;
  }
  return false;
}

NamedParameters select_parameters(const NamedParameters& parameters, const std::vector<std::string>& patterns,
                                  const std::vector<std::string>& except, const std::string& where) {
  const auto check = [&](const std::string& pattern, const std::string& field) {
    const bool found = std::any_of(parameters.begin(), parameters.end(),
                                   [&](const auto& parameter) { return name_matches(pattern, parameter.first); });
    if (found) return;
    std::set<std::string> words;
    std::vector<std::string> names;
    for (const auto& [name, parameter] : parameters) {
      names.push_back(name);
      for (const auto& part : parts_of(name))
        if (part.find_first_not_of("0123456789") != std::string::npos) words.insert(part);
    }
    std::vector<std::string> near(words.begin(), words.end());
    near.insert(near.end(), names.begin(), names.end());
    throw UsageError(where + "." + field + ": no parameter of the model has " + in_quotes(pattern) +
                     did_you_mean(pattern, near) + " (names are made of: " + listed({words.begin(), words.end()}) +
                     ")");
  };
  for (const auto& pattern : patterns) check(pattern, "parameters");
  for (const auto& pattern : except)
    if (pattern != "bias" && pattern != "norm") check(pattern, "except");
  NamedParameters chosen;
  for (const auto& parameter : parameters)
    if ((patterns.empty() || any_matches(patterns, parameter.first)) && !any_matches(except, parameter.first))
      chosen.push_back(parameter);
  if (chosen.empty())
    throw UsageError(where + ": expected at least one parameter, but all that `parameters` chooses " +
                     listed(patterns) + " are taken out by `except` " + listed(except));
  return chosen;
}

}  // namespace headlab
