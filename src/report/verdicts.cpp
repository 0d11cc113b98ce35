#include "src/report/claims.h"
#include "src/report/sections.h"

#include "src/report/figures.h"
#include "src/terminal/format.h"

namespace headlab::report {

using html::escape;

std::string head_of_page(const Run& run) {
  auto name = text_of(run.results, "name"), question = text_of(run.results, "question");
  std::vector<std::string> facts = {name, text_of(run.results, "label"), text_of(run.results, "id")};
  auto device = text_of(run.environment, "device");
  if (!device.empty()) facts.push_back(device);
  if (auto threads = number_of(run.environment, "threads")) facts.push_back(significant(*threads, 6) + " threads");
  if (auto& seed = member(run.results, "seed"); seed.is_number()) facts.push_back("seed " + dump(seed));
  if (auto seconds = number_of(run.results, "seconds")) facts.push_back(duration(*seconds));
  std::vector<json> claims;
  if (auto& all = member(run.results, "expect"); all.is_array()) claims.assign(all.begin(), all.end());
  std::string line;
  for (auto& fact : facts) {
    if (!fact.empty()) line += (line.empty() ? "" : " · ") + fact;
  }
  return "<header><p class=\"run\">" + escape(line) + "</p>\n<h1>" + escape(question.empty() ? name : question) +
         "</h1>\n" + claims_html(claims) + "</header>\n";
}

}  // namespace headlab::report
