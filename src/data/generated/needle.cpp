#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct NeedleOptions : ExerciseOptions<NeedleOptions, Form::sequence> {
  int64_t fillers = 32, keys = 8, values = 16, distractors = 1;
  SizeRange length{32, 96};
  void describe(Fields& fields) override {
    fields.add("fillers", fillers, "different symbols of the hay").at_least(1);
    fields.add("keys", keys, "different keys").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("distractors", distractors, "other keys with values in the hay").at_least(0);
    fields.add("length", length, "symbols of hay");
  }
  void rules(Problems& problems) const override {
    if (distractors + 1 > keys)
      problems.add("distractors",
                   "expected fewer than keys (" + std::to_string(keys) + "), got " + std::to_string(distractors));
    if (distractors > length.smallest())
      problems.add("distractors", "expected at most the shortest hay (" + std::to_string(length.smallest()) +
                                      "), got " + std::to_string(distractors));
  }
};

/// hay ... ! key value ... hay ? key: the value is asked. Needles are pairs marked by "!", of different keys, put
/// between the symbols of the hay at different places.
class Needle : public Exercise<NeedleOptions> {
 public:
  explicit Needle(const NeedleOptions& options) : Exercise(options) {
    mark_ = symbols_.add("!");
    question_ = symbols_.add("?");
    hay_ = symbols_.add("h", options_.fillers);
    key_ = symbols_.add("k", options_.keys);
    value_ = symbols_.add("v", options_.values);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto length = options_.length.draw(random, test), needles = options_.distractors + 1;
    const auto places = random.sample(length + 1, needles);
    const auto keys = random.sample(options_.keys, needles);
    std::vector<int32_t> values;
    for (int64_t i = 0; i < needles; ++i) values.push_back(value_ + uniform_below(random, options_.values));
    SequenceWriter writer;
    for (int64_t at = 0; at <= length; ++at) {
      const auto needle = static_cast<std::size_t>(std::find(places.begin(), places.end(), at) - places.begin());
      if (needle < places.size()) {
        writer.give(mark_);
        writer.give(key_ + static_cast<int32_t>(keys[needle]));
        writer.give(values[needle]);
      }
      if (at < length) writer.give(hay_ + uniform_below(random, options_.fillers));
    }
    writer.give(question_);
    writer.give(key_ + static_cast<int32_t>(keys[0]));
    writer.ask(values[0]);
    return writer.done();
  }

 private:
  int32_t mark_, question_, hay_, key_, value_;
};

}  // namespace

void add_needle(Generators& all) {
  all.entry<Needle, NeedleOptions>("needle", "a value that stands somewhere in a long hay");
}

}  // namespace headlab
