#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct RarestOptions : ExerciseOptions<RarestOptions, Form::label> {
  int64_t vocabulary = 200, bit_seed = 1;
  SizeRange length{16, 16};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols; s0 is the commonest").at_least(2);
    fields.add("bit_seed", bit_seed, "seed of which symbols are of which class").at_least(0);
    fields.add("length", length, "symbols of a text");
  }
};

/// A text of symbols drawn with the frequencies of Zipf, P(s_i) proportional to 1/(i+1). Each symbol belongs to class 0
/// or 1 at random; the text's class is that of its rarest symbol.
class Rarest : public Exercise<RarestOptions> {
 public:
  explicit Rarest(const RarestOptions& options) : Exercise(options) {
    first_ = symbols_.add("s", options_.vocabulary);
    double sum = 0;
    Random random(static_cast<uint64_t>(options_.bit_seed));
    for (int64_t i = 0; i < options_.vocabulary; ++i) {
      until_.push_back(sum += 1 / static_cast<double>(i + 1));
      class_of_.push_back(static_cast<int32_t>(random.below(2)));
    }
  }
  std::vector<std::string> classes() const override { return {"0", "1"}; }
  GeneratedExample draw(Random& random, bool test) const override {
    GeneratedExample example;
    std::size_t rarest = 0;
    for (auto left = options_.length.draw(random, test); left > 0; --left) {
      const auto at = std::upper_bound(until_.begin(), until_.end(), random.uniform() * until_.back()) - until_.begin();
      const auto symbol = std::min(static_cast<std::size_t>(at), until_.size() - 1);
      rarest = std::max(rarest, symbol);
      example.read.push_back(first_ + static_cast<int32_t>(symbol));
    }
    example.answer = {class_of_[rarest]};
    return example;
  }

 private:
  int32_t first_;
  std::vector<double> until_;  // cumulative, not normalised
  std::vector<int32_t> class_of_;
};

}  // namespace

void add_rarest(Generators& all) {
  all.entry<Rarest, RarestOptions>("rarest", "the class of the rarest symbol of a text", "2012.12366");
}

}  // namespace headlab
