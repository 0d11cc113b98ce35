#include "src/report/sections.h"

#include <algorithm>
#include <cctype>

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::Cell;
using html::escape;
using html::number_cell;
using html::Row;
using html::text_cell;

namespace {

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

}  // namespace

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

}  // namespace headlab::report
