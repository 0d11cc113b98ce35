#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct DyckOptions : ExerciseOptions<DyckOptions, Form::sequence> {
  int64_t types = 2, max_depth = 6;
  SizeRange pairs{4, 16};
  void describe(Fields& fields) override {
    fields.add("types", types, "kinds of brackets").at_least(1);
    fields.add("max_depth", max_depth, "brackets that may be open at once").at_least(1);
    fields.add("pairs", pairs, "pairs of brackets of a text");
  }
};

/// Words of Dyck-k: (0 and )0, (1 and )1, ... well nested. Where both may follow, an opening bracket follows with
/// probability 1/2, of uniform kind; each closing bracket is asked: its kind is that of the last one still open.
class Dyck : public Exercise<DyckOptions> {
 public:
  explicit Dyck(const DyckOptions& options) : Exercise(options) {
    open_ = symbols_.add("(", options_.types);
    close_ = symbols_.add(")", options_.types);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    auto left = options_.pairs.draw(random, test);  // still to be opened
    std::vector<int32_t> stack;
    SequenceWriter writer;
    while (left > 0 || !stack.empty()) {
      const bool may_open = left > 0 && static_cast<int64_t>(stack.size()) < options_.max_depth;
      if (may_open && (stack.empty() || random.below(2) == 0)) {
        stack.push_back(uniform_below(random, options_.types));
        writer.give(open_ + stack.back());
        --left;
      } else {
        writer.ask(close_ + stack.back());
        stack.pop_back();
      }
    }
    return writer.done();
  }

 private:
  int32_t open_, close_;
};

}  // namespace

void add_dyck(Generators& all) { all.entry<Dyck, DyckOptions>("dyck", "well-nested brackets of several kinds"); }

}  // namespace headlab
