#include "src/cli/search_flags.h"

#include <algorithm>

#include "modules/base/error.h"

namespace headlab {

void add_search_flags(CLI::App& command, SearchOptions& search) {
  command.add_option("--beam", search.beam, "hypotheses kept; 1: greedy")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--length-penalty", search.length_penalty, "alpha of ((5 + length) / 6)^alpha")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--n-best", search.n_best, "outputs of each input; best first, or as they are drawn")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--temperature", search.temperature, "draw, with logits divided by this; 0: the most probable")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--top-k", search.top_k, "draw from the k most probable tokens; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--top-p", search.top_p, "draw from the most probable tokens that make up p; 1: all")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 1.0));
  command.add_option("--seed", search.seed, "of what is drawn")->capture_default_str()->check(CLI::NonNegativeNumber);
  command.add_option("--max-length", search.max_length, "longest output in tokens; 0: from the source's length")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--prefix", search.prefix, "text that every output begins with");
}

void check_search(const std::string& command, const SearchOptions& search) {
  Problems problems;
  search.rules(problems);
  if (problems.found.empty()) return;
  auto flag = problems.found.front().field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  throw UsageError(command + ": --" + flag + ": " + problems.found.front().message);
}

}  // namespace headlab
