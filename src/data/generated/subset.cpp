#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct SubsetOptions : ExerciseOptions<SubsetOptions, Form::pair> {
  int64_t vocabulary = 24;
  SizeRange length{8, 8}, chosen{2, 5};
  std::string order = "source";
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols").at_least(2);
    fields.add("length", length, "symbols of a source, all different");
    fields.add("chosen", chosen, "symbols of the target");
    fields.add("order", order, "the order of the target: as in the source, or at random").one_of({"source", "random"});
  }
  void rules(Problems& problems) const override {
    if (length.largest() > vocabulary)
      problems.add("length", "expected at most vocabulary (" + std::to_string(vocabulary) +
                                 ") different symbols, got " + std::to_string(length.largest()));
    if (chosen.largest() > length.smallest())
      problems.add("chosen", "expected at most the smallest length (" + std::to_string(length.smallest()) + "), got " +
                                 std::to_string(chosen.largest()));
  }
};

/// A source of different symbols; the target is a random subset of them. The source does not say which: what is to be
/// learnt is the form, and what a model writes beyond chance comes from outside (head masks, sampling).
class Subset : public Exercise<SubsetOptions> {
 public:
  explicit Subset(const SubsetOptions& options) : Exercise(options) { first_ = symbols_.add("s", options_.vocabulary); }
  GeneratedExample draw(Random& random, bool test) const override {
    GeneratedExample example;
    const auto length = options_.length.draw(random, test);
    for (const auto symbol : random.sample(options_.vocabulary, length))
      example.source.push_back(first_ + static_cast<int32_t>(symbol));
    auto places = random.sample(length, options_.chosen.draw(random, test));
    if (options_.order == "source") std::sort(places.begin(), places.end());
    for (const auto place : places) example.read.push_back(example.source[static_cast<std::size_t>(place)]);
    return example;
  }

 private:
  int32_t first_;
};

}  // namespace

void add_subset(Generators& all) {
  all.entry<Subset, SubsetOptions>("subset", "some of the different symbols of the source");
}

}  // namespace headlab
