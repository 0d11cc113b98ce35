#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct InductionOptions : ExerciseOptions<InductionOptions, Form::sequence> {
  int64_t vocabulary = 32;
  SizeRange length{16, 32};
  std::string kind = "repeat";
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols").at_least(3);
    fields.add("length", length, "symbols before the repetition");
    fields.add("kind", kind, "repeat: all of it stands twice; query: one symbol stands again at the end")
        .one_of({"repeat", "query"});
  }
  void rules(Problems& problems) const override {
    if (length.smallest() < 2)
      problems.add("length", "expected at least 2 symbols, so that one follows another; got 1");
  }
};

/// repeat: x_1 ... x_n x_1 ... x_n, uniformly drawn; x_2 ... x_n of the second time are asked.
/// query: ... a b ... a, where a stood once before, not at the last place; b is asked.
class Induction : public Exercise<InductionOptions> {
 public:
  explicit Induction(const InductionOptions& options) : Exercise(options) {
    first_ = symbols_.add("s", options_.vocabulary);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto length = static_cast<std::size_t>(options_.length.draw(random, test));
    std::vector<int32_t> text(length);
    SequenceWriter writer;
    if (options_.kind == "repeat") {
      for (auto& symbol : text) symbol = first_ + uniform_below(random, options_.vocabulary);
      for (const auto symbol : text) writer.give(symbol);
      writer.give(text[0]);
      for (std::size_t i = 1; i < length; ++i) writer.ask(text[i]);
    } else {
      const auto asked = uniform_below(random, options_.vocabulary);
      const auto place = static_cast<std::size_t>(random.below(length - 1));
      for (std::size_t i = 0; i < length; ++i) {
        const auto other = uniform_below(random, options_.vocabulary - 1);
        text[i] = first_ + (i == place ? asked : other + (other >= asked));
      }
      for (const auto symbol : text) writer.give(symbol);
      writer.give(first_ + asked);
      writer.ask(text[place + 1]);
    }
    return writer.done();
  }

 private:
  int32_t first_;
};

}  // namespace

void add_induction(Generators& all) {
  all.entry<Induction, InductionOptions>("induction", "what followed a symbol before follows it again", "2209.11895");
}

}  // namespace headlab
