#include "src/spec/mistakes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace headlab {

namespace {

constexpr std::size_t most_shown = 50;

std::string joined(const std::vector<Mistake>& mistakes) {
  std::string text;
  for (std::size_t i = 0; i < mistakes.size() && i < most_shown; ++i) text += mistakes[i].text() + "\n";
  if (mistakes.size() > most_shown) text += "... and " + std::to_string(mistakes.size() - most_shown) + " more\n";
  return text + std::to_string(mistakes.size()) + (mistakes.size() == 1 ? " mistake" : " mistakes") +
         ", nothing was run";
}

}  // namespace

SpecErrors::SpecErrors(std::vector<Mistake> found)
    : UsageError(joined(sorted(found))), mistakes(sorted(std::move(found))) {}

std::vector<Mistake> sorted(std::vector<Mistake> mistakes) {
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.place < b.place; });
  std::vector<Mistake> once;
  std::set<std::string> seen;
  for (Mistake& mistake : mistakes) {
    if (seen.insert(mistake.text()).second) once.push_back(std::move(mistake));
  }
  return once;
}

void throw_mistakes(std::vector<Mistake> mistakes) {
  if (!mistakes.empty()) throw SpecErrors(std::move(mistakes));
}

}  // namespace headlab
