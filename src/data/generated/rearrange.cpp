#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct RearrangeOptions : ExerciseOptions<RearrangeOptions, Form::pair> {
  int64_t vocabulary = 16;
  SizeRange length{4, 12};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols").at_least(2);
    fields.add("length", length, "symbols of a source");
  }
};

/// A source of uniformly drawn symbols s0, s1, ... and the same symbols in another order.
class Rearrange : public Exercise<RearrangeOptions> {
 public:
  using Order = void (*)(std::vector<int32_t>& symbols);
  Rearrange(const RearrangeOptions& options, Order order) : Exercise(options), order_(order) {
    first_ = symbols_.add("s", options_.vocabulary);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    GeneratedExample example;
    for (auto left = options_.length.draw(random, test); left > 0; --left)
      example.source.push_back(first_ + uniform_below(random, options_.vocabulary));
    example.read = example.source;
    order_(example.read);
    return example;
  }

 private:
  Order order_;
  int32_t first_;
};

struct CopyExercise : Rearrange {
  explicit CopyExercise(const RearrangeOptions& options) : Rearrange(options, [](std::vector<int32_t>&) {}) {}
};
struct ReverseExercise : Rearrange {
  explicit ReverseExercise(const RearrangeOptions& options)
      : Rearrange(options, [](std::vector<int32_t>& symbols) { std::reverse(symbols.begin(), symbols.end()); }) {}
};
struct SortExercise : Rearrange {
  explicit SortExercise(const RearrangeOptions& options)
      : Rearrange(options, [](std::vector<int32_t>& symbols) { std::sort(symbols.begin(), symbols.end()); }) {}
};

}  // namespace

void add_rearrange(Generators& all) {
  all.entry<CopyExercise, RearrangeOptions>("copy", "the source again");
  all.entry<ReverseExercise, RearrangeOptions>("reverse", "the source from its end to its beginning");
  all.entry<SortExercise, RearrangeOptions>("sort", "the symbols of the source in order");
}

}  // namespace headlab
