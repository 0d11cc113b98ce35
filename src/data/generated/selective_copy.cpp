#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct SelectiveCopyOptions : ExerciseOptions<SelectiveCopyOptions, Form::pair> {
  int64_t vocabulary = 16, marked = 4;
  SizeRange length{12, 24};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols beside the blank").at_least(2);
    fields.add("marked", marked, "places that are not blank").at_least(1);
    fields.add("length", length, "places of a source");
  }
  void rules(Problems& problems) const override {
    if (marked > length.smallest())
      problems.add("marked", "expected at most the smallest length (" + std::to_string(length.smallest()) + "), got " +
                                 std::to_string(marked));
  }
};

/// A source of blanks "_" with a few symbols at random places; the target is the symbols in their order.
class SelectiveCopy : public Exercise<SelectiveCopyOptions> {
 public:
  explicit SelectiveCopy(const SelectiveCopyOptions& options) : Exercise(options) {
    blank_ = symbols_.add("_");
    first_ = symbols_.add("s", options_.vocabulary);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    GeneratedExample example;
    const auto length = options_.length.draw(random, test);
    example.source.assign(static_cast<std::size_t>(length), blank_);
    for (const auto place : random.sample(length, options_.marked))
      example.source[static_cast<std::size_t>(place)] = first_ + uniform_below(random, options_.vocabulary);
    for (const auto symbol : example.source)
      if (symbol != blank_) example.read.push_back(symbol);
    return example;
  }

 private:
  int32_t blank_, first_;
};

}  // namespace

void add_selective_copy(Generators& all) {
  all.entry<SelectiveCopy, SelectiveCopyOptions>("selective_copy", "the symbols that stand among blanks", "2312.00752");
}

}  // namespace headlab
