#include "src/data/grammar/grammar.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "src/data/grammar/combinations.h"
#include "src/data/grammar/sample.h"
#include "src/data/grammar/tree.h"

namespace headlab::grammar {
namespace {

/// Sentences that are taken already: of both sides, so that neither side of a test pair was seen in training.
struct Seen {
  std::unordered_set<std::string> source, target;
};

std::optional<Example> draw(const GrammarOptions& options, Random& random) {
  const std::optional<Utterance> utterance = sample(random);
  if (!utterance) return std::nullopt;
  Example example = finish(*utterance);
  const auto tokens = static_cast<int64_t>(example.source_gold.tokens.size());
  if (tokens < 4 || tokens > options.max_tokens) return std::nullopt;
  for (std::string& combination : combinations(*utterance)) {
    if (is_held_out(combination, options.held_out)) example.held_out.push_back(std::move(combination));
  }
  return example;
}

Split make(const GrammarOptions& options, const std::string& name, uint64_t stream, int64_t count, bool held_out,
           Seen& seen) {
  Split split{name, {}};
  split.examples.reserve(static_cast<std::size_t>(count));
  constexpr int64_t patience = 20000;  // draws in a row without a new pair
  int64_t fruitless = 0;
  for (uint64_t index = 0; static_cast<int64_t>(split.examples.size()) < count; ++index) {
    if (++fruitless > patience) {
      throw UsageError("grammar." + name + ": expected " + std::to_string(count) + " different pairs, got " +
                       std::to_string(split.examples.size()) + " with held_out " + std::to_string(options.held_out) +
                       " and max_tokens " + std::to_string(options.max_tokens) + "; ask for fewer pairs, or raise " +
                       (held_out ? "held_out or max_tokens" : "max_tokens"));
    }
    Random random = Random::stream(static_cast<uint64_t>(options.seed), {stream, index});
    std::optional<Example> example = draw(options, random);
    if (!example || example->held_out.empty() == held_out) continue;
    if (seen.source.count(example->source) > 0 || seen.target.count(example->target) > 0) continue;
    seen.source.insert(example->source);
    seen.target.insert(example->target);
    split.examples.push_back(std::move(*example));
    fruitless = 0;
  }
  return split;
}

}  // namespace

void GrammarOptions::describe(Fields& fields) {
  fields.add("train", train, "training pairs").at_least(0).unit("pairs");
  fields.add("valid", valid, "validation pairs; like train, without held-out combinations").at_least(0).unit("pairs");
  fields.add("test", test, "test pairs; each has at least one held-out combination").at_least(0).unit("pairs");
  fields.add("seed", seed, "seed of every draw").at_least(0);
  fields.add("held_out", held_out, "share of the word combinations kept out of train and valid")
      .at_least(1)
      .at_most(50)
      .unit("percent");
  fields.add("max_tokens", max_tokens, "longest English side, punctuation included")
      .at_least(6)
      .at_most(40)
      .unit("tokens");
}

const Split& Corpus::split(const std::string& name) const {
  for (const Split& split : splits) {
    if (split.name == name) return split;
  }
  throw UsageError("grammar: no split \"" + name + "\"; there are train, valid, test");
}

Corpus generate(const GrammarOptions& options) {
  Corpus corpus;
  corpus.options = options;
  for (std::string& combination : possible_combinations()) {
    if (is_held_out(combination, options.held_out)) corpus.held_out.push_back(std::move(combination));
  }
  Seen seen;
  Split test = make(options, "test", 3, options.test, true, seen);
  Split valid = make(options, "valid", 2, options.valid, false, seen);
  Split train = make(options, "train", 1, options.train, false, seen);
  corpus.splits.push_back(std::move(train));
  corpus.splits.push_back(std::move(valid));
  corpus.splits.push_back(std::move(test));
  return corpus;
}

}  // namespace headlab::grammar
