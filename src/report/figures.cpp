#include "src/report/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/terminal/format.h"

namespace headlab {
namespace {

struct Metric {
  const char *name, *title;
  int digits;
  bool less_is_better;
};
constexpr Metric known[] = {{"bleu", "BLEU", 1, false},
                            {"chrf", "chrF", 1, false},
                            {"loss", "loss", 3, true},
                            {"nll", "loss without smoothing", 3, true},
                            {"perplexity", "perplexity", 2, true},
                            {"accuracy", "accuracy", 3, false}};

const Metric* find(const std::string& metric) {
  auto found = std::find_if(std::begin(known), std::end(known), [&](auto& item) { return item.name == metric; });
  return found == std::end(known) ? nullptr : found;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string metric_title(const std::string& metric) {
  auto* found = find(metric);
  return found ? found->title : metric;
}

bool less_is_better(const std::string& metric) {
  auto* found = find(metric);
  return found ? found->less_is_better : ends_with(metric, "loss") || ends_with(metric, "error");
}

std::string figure(const std::string& metric, double value) {
  auto* found = find(metric);
  return found ? fixed(value, found->digits) : significant(value, 4);
}

std::string figure_signed(const std::string& metric, double value) {
  auto* found = find(metric);
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
