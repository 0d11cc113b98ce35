#include <set>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct FactsOptions : ExerciseOptions<FactsOptions, Form::sequence> {
  int64_t subjects = 12, relations = 4, objects = 12, queries = 1;
  SizeRange facts{4, 8};
  void describe(Fields& fields) override {
    fields.add("subjects", subjects, "different subjects").at_least(1);
    fields.add("relations", relations, "different relations").at_least(1);
    fields.add("objects", objects, "different objects").at_least(2);
    fields.add("facts", facts, "facts of a text");
    fields.add("queries", queries, "facts that are asked").at_least(1);
  }
  void rules(Problems& problems) const override {
    if (facts.largest() > subjects * relations)
      problems.add("facts", "expected at most subjects x relations (" + std::to_string(subjects * relations) +
                                ") facts, got " + std::to_string(facts.largest()));
    if (queries > facts.smallest())
      problems.add("queries", "expected at most the fewest facts (" + std::to_string(facts.smallest()) + "), got " +
                                  std::to_string(queries));
  }
};

/// s r o . s r o . ... ? s r o ...: facts of different subject and relation; then some of them, whose objects are
/// asked.
class Facts : public Exercise<FactsOptions> {
 public:
  explicit Facts(const FactsOptions& options) : Exercise(options) {
    stop_ = symbols_.add(".");
    question_ = symbols_.add("?");
    subject_ = symbols_.add("s", options_.subjects);
    relation_ = symbols_.add("r", options_.relations);
    object_ = symbols_.add("o", options_.objects);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto count = options_.facts.draw(random, test);
    const auto of = random.sample(options_.subjects * options_.relations, count);
    std::vector<int32_t> objects;
    SequenceWriter writer;
    const auto begin = [&](int64_t fact) {
      writer.give(subject_ + static_cast<int32_t>(fact / options_.relations));
      writer.give(relation_ + static_cast<int32_t>(fact % options_.relations));
    };
    for (const auto fact : of) {
      begin(fact);
      objects.push_back(object_ + uniform_below(random, options_.objects));
      writer.give(objects.back());
      writer.give(stop_);
    }
    writer.give(question_);
    for (const auto i : random.sample(count, options_.queries)) {
      begin(of[static_cast<std::size_t>(i)]);
      writer.ask(objects[static_cast<std::size_t>(i)]);
    }
    return writer.done();
  }

 private:
  int32_t stop_, question_, subject_, relation_, object_;
};

}  // namespace

void add_facts(Generators& all) {
  all.entry<Facts, FactsOptions>("facts", "objects of facts that stood before (subject relation object)");
}

}  // namespace headlab
