#pragma once

// GCC 12 takes std::regex for uninitialised when it instruments it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

/// What any page of ours must be.
namespace headlab::test {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

inline std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

/// The first tag that is not closed as it should be; empty where all are.
inline std::string first_unbalanced(const std::string& page) {
  static const std::set<std::string> empty_elements = {"meta", "path", "circle", "polygon"};
  std::vector<std::string> open;
  std::regex tag("<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\"[^\"]*\"|[^\"<>])*?)(/?)>");
  for (std::sregex_iterator at(page.begin(), page.end(), tag), end; at != end; ++at) {
    std::string name = (*at)[2];
    if ((*at)[4] == "/" || empty_elements.count(name)) continue;
    if ((*at)[1] != "/") {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + ">";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

/// Puts `text` in the place of every text, and of every key of the objects whose keys are free.
inline void poison(nlohmann::ordered_json& value, const std::string& text) {
  if (value.is_string()) value = text;
  if (!value.is_structured()) return;
  for (auto& item : value) poison(item, text);
}

}  // namespace headlab::test
