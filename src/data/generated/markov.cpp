#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct MarkovOptions : ExerciseOptions<MarkovOptions, Form::sequence> {
  int64_t vocabulary = 24, branches = 4, table_seed = 1;
  SizeRange length{32, 32};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols").at_least(2);
    fields.add("branches", branches, "symbols that can follow a symbol").at_least(1);
    fields.add("table_seed", table_seed, "seed of which follow, and how often").at_least(0);
    fields.add("length", length, "symbols of a text");
  }
  void rules(Problems& problems) const override {
    if (branches > vocabulary)
      problems.add("branches",
                   "expected at most vocabulary (" + std::to_string(vocabulary) + "), got " + std::to_string(branches));
    if (length.smallest() < 2)
      problems.add("length", "expected at least 2 symbols, so that one follows another; got 1");
  }
};

/// A Markov chain: the first symbol is uniform, each other one is asked and follows the one before with the
/// probabilities of a random table (those of `branches` successors are proportional to uniform numbers). The best loss
/// is the chain's entropy.
class Markov : public Exercise<MarkovOptions> {
 public:
  explicit Markov(const MarkovOptions& options) : Exercise(options) {
    first_ = symbols_.add("s", options_.vocabulary);
    for (int64_t from = 0; from < options_.vocabulary; ++from) {
      auto random = Random::stream(static_cast<uint64_t>(options_.table_seed), {static_cast<uint64_t>(from)});
      followers_.push_back(random.sample(options_.vocabulary, options_.branches));
      auto& until = until_.emplace_back();
      double sum = 0;
      for (int64_t i = 0; i < options_.branches; ++i) until.push_back(sum += 0.05 + random.uniform());
    }
  }
  GeneratedExample draw(Random& random, bool test) const override {
    SequenceWriter writer;
    auto now = static_cast<std::size_t>(random.below(static_cast<uint64_t>(options_.vocabulary)));
    writer.give(first_ + static_cast<int32_t>(now));
    for (auto left = options_.length.draw(random, test) - 1; left > 0; --left) {
      const auto& until = until_[now];
      const auto at = random.uniform() * until.back();
      std::size_t branch = 0;
      while (branch + 1 < until.size() && at >= until[branch]) ++branch;
      now = static_cast<std::size_t>(followers_[now][branch]);
      writer.ask(first_ + static_cast<int32_t>(now));
    }
    return writer.done();
  }

 private:
  int32_t first_;
  std::vector<std::vector<int64_t>> followers_;
  std::vector<std::vector<double>> until_;  // cumulative, not normalised
};

}  // namespace

void add_markov(Generators& all) {
  all.entry<Markov, MarkovOptions>("markov", "a random chain of symbols: a small language without memory");
}

}  // namespace headlab
