#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct FewShotOptions : ExerciseOptions<FewShotOptions, Form::sequence> {
  int64_t symbols = 12, functions = 6, function_seed = 1;
  std::string score = "query";
  SizeRange shots{5, 5};
  void describe(Fields& fields) override {
    fields.add("symbols", symbols, "different symbols").at_least(2);
    fields.add("functions", functions, "permutations of the symbols; a text is about one of them, and does not name it")
        .at_least(1);
    fields.add("function_seed", function_seed, "seed of the permutations").at_least(0);
    fields.add("shots", shots, "examples before the query");
    fields.add("score", score, "what is asked: the query alone, or each example too").one_of({"query", "all"});
  }
  void rules(Problems& problems) const override {
    if (shots.largest() + 1 > symbols)
      problems.add("shots", "expected fewer than symbols (" + std::to_string(symbols) +
                                "), since none is shown twice; got " + std::to_string(shots.largest()));
  }
};

/// x : f(x) | x : f(x) | ... | x : f(x), with one latent permutation f a text and different x.
class FewShot : public Exercise<FewShotOptions> {
 public:
  explicit FewShot(const FewShotOptions& options) : Exercise(options) {
    gives_ = symbols_.add(":");
    next_ = symbols_.add("|");
    first_ = symbols_.add("s", options_.symbols);
    for (int64_t f = 0; f < options_.functions; ++f)
      functions_.push_back(Random::stream(static_cast<uint64_t>(options_.function_seed), {static_cast<uint64_t>(f)})
                               .permutation(options_.symbols));
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto& function = functions_[static_cast<std::size_t>(random.below(functions_.size()))];
    const auto inputs = random.sample(options_.symbols, options_.shots.draw(random, test) + 1);
    SequenceWriter writer;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i > 0) writer.give(next_);
      writer.give(first_ + static_cast<int32_t>(inputs[i]));
      writer.give(gives_);
      const auto output = first_ + static_cast<int32_t>(function[static_cast<std::size_t>(inputs[i])]);
      if (options_.score == "all" || i + 1 == inputs.size())
        writer.ask(output);
      else
        writer.give(output);
    }
    return writer.done();
  }

 private:
  int32_t gives_, next_, first_;
  std::vector<std::vector<int64_t>> functions_;
};

}  // namespace

void add_few_shot(Generators& all) {
  all.entry<FewShot, FewShotOptions>("few_shot", "a function that examples show, applied to another symbol",
                                     "2502.14010");
}

}  // namespace headlab
