#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct RarestOptions : ExerciseOptions<RarestOptions, Form::label> {
  int64_t vocabulary = 200, bit_seed = 1, back = 0;
  std::string law = "zipf", asked = "rarest";
  SizeRange length{16, 16};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols; s0 is the commonest").at_least(2);
    fields.add("bit_seed", bit_seed, "seed of which symbols are of which class").at_least(0);
    fields.add("law", law, "how often symbols stand in texts: P(s_i) proportional to 1 / (i + 1), or all alike")
        .one_of({"zipf", "uniform"});
    fields
        .add("asked", asked,
             "whose class: the rarest symbol's, that of most symbols, or that of the symbol `back` places before the "
             "last")
        .one_of({"rarest", "most", "back"});
    fields.add("back", back, "of `asked` back; 0: the last symbol").at_least(0).unit("symbols");
    fields.add("length", length, "symbols of a text");
  }
  void rules(Problems& problems) const override {
    if (asked == "back" && back >= length.smallest())
      problems.add("back", "expected less than the shortest text (" + std::to_string(length.smallest()) + "), got " +
                               std::to_string(back));
  }
};

/// A text of symbols drawn by Zipf's law, P(s_i) proportional to 1/(i+1), or uniformly. Each symbol belongs to class 0
/// or 1 at random; the text's class is that of its rarest symbol (the one of the largest number), that of most of its
/// symbols (a text with as many of each is drawn again), or that of the symbol at one place. The symbols and their
/// classes depend on neither law nor question, so that a model may learn them from one and be asked another.
class Rarest : public Exercise<RarestOptions> {
 public:
  explicit Rarest(const RarestOptions& options) : Exercise(options) {
    first_ = symbols_.add("s", options_.vocabulary);
    double sum = 0;
    Random random(static_cast<uint64_t>(options_.bit_seed));
    for (int64_t i = 0; i < options_.vocabulary; ++i) {
      until_.push_back(sum += options_.law == "zipf" ? 1 / static_cast<double>(i + 1) : 1.0);
      class_of_.push_back(static_cast<int32_t>(random.below(2)));
    }
  }
  std::vector<std::string> classes() const override { return {"0", "1"}; }
  GeneratedExample draw(Random& random, bool test) const override {
    for (;;) {
      GeneratedExample example;
      std::vector<std::size_t> text;
      int64_t ones = 0;
      for (auto left = options_.length.draw(random, test); left > 0; --left) {
        const auto at =
            std::upper_bound(until_.begin(), until_.end(), random.uniform() * until_.back()) - until_.begin();
        text.push_back(std::min(static_cast<std::size_t>(at), until_.size() - 1));
        ones += class_of_[text.back()];
        example.read.push_back(first_ + static_cast<int32_t>(text.back()));
      }
      const auto twice = 2 * ones - static_cast<int64_t>(text.size());
      if (options_.asked == "most" && twice == 0) continue;
      const auto asked = options_.asked == "back" ? text[text.size() - 1 - static_cast<std::size_t>(options_.back)]
                                                  : *std::max_element(text.begin(), text.end());
      example.answer = {options_.asked == "most" ? (twice > 0 ? 1 : 0) : class_of_[asked]};
      return example;
    }
  }

 private:
  int32_t first_;
  std::vector<double> until_;  // cumulative, not normalised
  std::vector<int32_t> class_of_;
};

}  // namespace

void add_rarest(Generators& all) {
  all.entry<Rarest, RarestOptions>("rarest", "the class of the rarest symbol of a text, of most symbols, or of one",
                                   "2012.12366");
}

}  // namespace headlab
