#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct RefuseOptions : ExerciseOptions<RefuseOptions, Form::sequence> {
  int64_t vocabulary = 24, refused = 6;
  double share = 0.5;
  SizeRange length{3, 8};
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols that are echoed").at_least(1);
    fields.add("refused", refused, "different symbols that are not").at_least(1);
    fields.add("share", share, "share of the texts with a symbol that is not").at_least(0).at_most(1);
    fields.add("length", length, "symbols before the question");
  }
};

/// x_1 ... x_n ?: if a symbol of the refused class stands among them (at one random place), REFUSE is asked, else x_1
/// ... x_n again.
class Refuse : public Exercise<RefuseOptions> {
 public:
  explicit Refuse(const RefuseOptions& options) : Exercise(options) {
    question_ = symbols_.add("?");
    refuse_ = symbols_.add("REFUSE");
    echoed_ = symbols_.add("s", options_.vocabulary);
    refused_ = symbols_.add("f", options_.refused);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    std::vector<int32_t> text;
    for (auto left = options_.length.draw(random, test); left > 0; --left)
      text.push_back(echoed_ + uniform_below(random, options_.vocabulary));
    const bool refuse = random.uniform() < options_.share;
    if (refuse)
      text[static_cast<std::size_t>(random.below(text.size()))] = refused_ + uniform_below(random, options_.refused);
    SequenceWriter writer;
    for (const auto symbol : text) writer.give(symbol);
    writer.give(question_);
    if (refuse) text = {refuse_};
    for (const auto symbol : text) writer.ask(symbol);
    return writer.done();
  }

 private:
  int32_t question_, refuse_, echoed_, refused_;
};

}  // namespace

void add_refuse(Generators& all) {
  all.entry<Refuse, RefuseOptions>("refuse", "an echo, but REFUSE after symbols of one class", "2508.19697");
}

}  // namespace headlab
