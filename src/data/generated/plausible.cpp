#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct PlausibleOptions : ExerciseOptions<PlausibleOptions, Form::sequence> {
  int64_t classes = 6, nouns = 4, verbs = 2;
  void describe(Fields& fields) override {
    fields.add("classes", classes, "classes of nouns").at_least(2);
    fields.add("nouns", nouns, "nouns of a class").at_least(1);
    fields.add("verbs", verbs, "verbs that go with a class").at_least(1);
  }
};

/// noun noun verb: two nouns of different classes and a verb that goes with one of them; that noun is asked.
/// n3.1 is noun 1 of class 3, v3.0 a verb of class 3.
class Plausible : public Exercise<PlausibleOptions> {
 public:
  explicit Plausible(const PlausibleOptions& options) : Exercise(options) {
    for (int64_t c = 0; c < options_.classes; ++c) {
      nouns_.push_back(symbols_.add("n" + std::to_string(c) + ".", options_.nouns));
      verbs_.push_back(symbols_.add("v" + std::to_string(c) + ".", options_.verbs));
    }
  }
  GeneratedExample draw(Random& random, bool) const override {
    const auto classes = random.sample(options_.classes, 2);
    int32_t nouns[2];
    SequenceWriter writer;
    for (int i = 0; i < 2; ++i) {
      nouns[i] = nouns_[static_cast<std::size_t>(classes[static_cast<std::size_t>(i)])] +
                 uniform_below(random, options_.nouns);
      writer.give(nouns[i]);
    }
    const auto fits = random.below(2);
    writer.give(verbs_[static_cast<std::size_t>(classes[fits])] + uniform_below(random, options_.verbs));
    writer.ask(nouns[fits]);
    return writer.done();
  }

 private:
  std::vector<int32_t> nouns_, verbs_;
};

}  // namespace

void add_plausible(Generators& all) {
  all.entry<Plausible, PlausibleOptions>("plausible", "the noun that the verb fits, out of two", "2310.13824");
}

}  // namespace headlab
