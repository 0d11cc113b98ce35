#pragma once

// GCC 12 takes std::regex for uninitialised when it instruments it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cmath>
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

/// The page with what its script elements hold taken out.
inline std::string without_scripts(const std::string& page) {
  std::string rest;
  std::size_t at = 0;
  for (std::size_t from; (from = page.find("<script", at)) != std::string::npos;) {
    const auto begin = page.find('>', from) + 1, end = page.find("</script>", begin);
    rest += page.substr(at, begin - at);
    at = end;
    if (end == std::string::npos) return rest;
  }
  return rest + page.substr(at);
}

/// The data of the page's charts, in their order.
inline std::vector<nlohmann::json> charts_in(const std::string& page) {
  const std::string mark = "<script type=\"application/json\">";
  std::vector<nlohmann::json> charts;
  for (auto at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    charts.push_back(nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin)));
  }
  return charts;
}

/// Whether a chart has a line of this name through this point.
inline bool draws(const std::string& page, const std::string& x_title, const std::string& line, double x, double y) {
  for (const auto& chart : charts_in(page))
    for (const auto& one : chart["lines"])
      if (chart["x"] == x_title && one["name"] == line)
        for (const auto& point : one["points"])
          if (point[0] == x && point[1].is_number() && std::abs(point[1].get<double>() - y) < 1e-9) return true;
  return false;
}

/// How many of the page's bands have a colour.
inline std::size_t bands_of(const std::string& page, int colour) {
  std::size_t found = 0;
  for (const auto& chart : charts_in(page))
    for (const auto& band : chart["bands"]) found += band["colour"] == colour;
  return found;
}

/// The first tag that is not closed as it should be; empty where all are.
inline std::string first_unbalanced(const std::string& whole) {
  const auto page = without_scripts(whole);
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
