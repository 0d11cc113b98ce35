#include "src/report/figures.h"

#include <cmath>
#include <cstdio>

#include "src/metrics/names.h"
#include "src/terminal/format.h"

namespace headlab {

std::string metric_title(const std::string& metric) {
  auto* found = find_metric(metric);
  return found ? found->title : metric;
}

bool less_is_better(const std::string& metric) { return smaller_is_better(metric); }

std::string figure(const std::string& metric, double value) {
  auto* found = find_metric(metric);
  return found ? fixed(value, found->digits) : significant(value, 4);
}

std::string figure_signed(const std::string& metric, double value) {
  auto* found = find_metric(metric);
  if (found) return fixed_signed(value, found->digits);
  return (value > 0 ? "+" : "") + significant(value, 4);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return fixed(value, 0);
  if (std::abs(value) >= 1000 && std::abs(value) < 1e9) return with_commas(std::llround(value));
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  std::string result = text;
  auto exponent = result.find('e');
  if (exponent == std::string::npos) return result;
  auto power = std::to_string(std::stoi(result.substr(exponent + 1)));  // without its + and zeros
  return result.substr(0, exponent) + "e" + power;
}

}  // namespace headlab
