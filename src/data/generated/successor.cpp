#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct SuccessorOptions : ExerciseOptions<SuccessorOptions, Form::sequence> {
  int64_t numbers = 30, letters = 26, months = 12, runs = 3;
  SizeRange terms{3, 8};
  void describe(Fields& fields) override {
    fields.add("numbers", numbers, "length of the list of numbers, which ends").at_least(2);
    fields.add("letters", letters, "length of the list of letters, which ends").at_least(2);
    fields.add("months", months, "length of the list of months, which begins again").at_least(2);
    fields.add("runs", runs, "pieces of lists, one after another").at_least(1);
    fields.add("terms", terms, "terms of a run");
  }
  void rules(Problems& problems) const override {
    if (terms.smallest() < 2) problems.add("terms", "expected at least 2, so that one follows another; got 1");
    if (terms.largest() > std::min(numbers, letters))
      problems.add("terms", "expected at most " + std::to_string(std::min(numbers, letters)) +
                                ", the shorter of the lists that end; got " + std::to_string(terms.largest()));
  }
};

/// Runs of ordered lists, n0 n1 ..., l0 l1 ..., m0 m1 ... m0: "t , t+1 , t+2 ; u , u+1". Each term but a run's first is
/// asked.
class Successor : public Exercise<SuccessorOptions> {
 public:
  explicit Successor(const SuccessorOptions& options) : Exercise(options) {
    comma_ = symbols_.add(",");
    end_ = symbols_.add(";");
    lists_ = {{symbols_.add("n", options_.numbers), options_.numbers, false},
              {symbols_.add("l", options_.letters), options_.letters, false},
              {symbols_.add("m", options_.months), options_.months, true}};
  }
  GeneratedExample draw(Random& random, bool test) const override {
    SequenceWriter writer;
    for (int64_t run = 0; run < options_.runs; ++run) {
      if (run > 0) writer.give(end_);
      const auto& list = lists_[static_cast<std::size_t>(random.below(lists_.size()))];
      const auto terms = options_.terms.draw(random, test);
      const auto start = uniform_below(random, list.cyclic ? list.count : list.count - terms + 1);
      for (int64_t i = 0; i < terms; ++i) {
        const auto term = list.first + static_cast<int32_t>((start + i) % list.count);
        if (i == 0) {
          writer.give(term);
        } else {
          writer.give(comma_);
          writer.ask(term);
        }
      }
    }
    return writer.done();
  }

 private:
  struct List {
    int32_t first;
    int64_t count;
    bool cyclic;
  };
  int32_t comma_, end_;
  std::vector<List> lists_;
};

}  // namespace

void add_successor(Generators& all) {
  all.entry<Successor, SuccessorOptions>("successor", "the next term of numbers, letters or months", "2312.09230");
}

}  // namespace headlab
