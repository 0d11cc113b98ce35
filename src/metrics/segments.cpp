#include "src/metrics/segments.h"

#include <cstdio>

#include "modules/base/error.h"

namespace headlab {

Counts sum_of(const std::vector<Counts>& sentences) {
  if (sentences.empty()) throw Error("expected at least one sentence, got none");
  Counts total = sentences.front();
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += sentences[i].at(k);
  }
  return total;
}

void check_layout(const std::string& metric, const std::vector<std::string>& hypotheses,
                  const std::vector<std::vector<std::string>>& references) {
  if (hypotheses.empty()) throw Error(metric + ": expected at least one hypothesis, got none");
  if (references.empty()) throw Error(metric + ": expected at least one set of references, got none");
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() == hypotheses.size()) continue;
    throw Error(metric + ": expected as many references as hypotheses, got " + std::to_string(hypotheses.size()) +
                " hypotheses and " + std::to_string(references[r].size()) + " references" +
                (references.size() > 1 ? " in set " + std::to_string(r) : ""));
  }
}

}  // namespace headlab
