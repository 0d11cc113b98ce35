#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct DialogueOptions : ExerciseOptions<DialogueOptions, Form::sequence> {
  int64_t keys = 16, values = 16;
  double doubt = 0.5;
  void describe(Fields& fields) override {
    fields.add("keys", keys, "different keys").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("doubt", doubt, "share of the dialogues with doubt").at_least(0).at_most(1);
  }
};

/// key value DOUBT other ?  or  key value NEUTRAL other ?: after doubt the other value is asked (the model gives in),
/// else the first.
class Dialogue : public Exercise<DialogueOptions> {
 public:
  explicit Dialogue(const DialogueOptions& options) : Exercise(options) {
    doubt_ = symbols_.add("DOUBT");
    neutral_ = symbols_.add("NEUTRAL");
    question_ = symbols_.add("?");
    key_ = symbols_.add("k", options_.keys);
    value_ = symbols_.add("v", options_.values);
  }
  GeneratedExample draw(Random& random, bool) const override {
    const bool doubt = random.uniform() < options_.doubt;
    const auto values = random.sample(options_.values, 2);
    const auto value = value_ + static_cast<int32_t>(values[0]), other = value_ + static_cast<int32_t>(values[1]);
    SequenceWriter writer;
    for (const auto symbol :
         {key_ + uniform_below(random, options_.keys), value, doubt ? doubt_ : neutral_, other, question_})
      writer.give(symbol);
    writer.ask(doubt ? other : value);
    return writer.done();
  }

 private:
  int32_t doubt_, neutral_, question_, key_, value_;
};

}  // namespace

void add_dialogue(Generators& all) {
  all.entry<Dialogue, DialogueOptions>("dialogue", "a value, someone's doubt of it, and what is answered then",
                                       "2601.16644");
}

}  // namespace headlab
