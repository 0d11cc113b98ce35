#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct RecallOptions : ExerciseOptions<RecallOptions, Form::sequence> {
  int64_t keys = 12, values = 12, gap = 0;
  std::optional<int64_t> queries;
  SizeRange pairs{6, 6};
  void describe(Fields& fields) override {
    fields.add("keys", keys, "different keys").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("pairs", pairs, "pairs of a key and a value");
    fields.add("queries", queries, "keys that are asked").at_least(1).means("absent: all that stood there");
    fields.add("gap", gap, "fillers between the pairs and the queries").at_least(0).unit("symbols");
  }
  void rules(Problems& problems) const override {
    if (pairs.largest() > keys)
      problems.add("pairs", "expected at most keys (" + std::to_string(keys) +
                                ") pairs, since no key stands twice; got " + std::to_string(pairs.largest()));
    if (queries && *queries > pairs.smallest())
      problems.add("queries", "expected at most the fewest pairs (" + std::to_string(pairs.smallest()) + "), got " +
                                  std::to_string(*queries));
  }
};

/// k v k v ... (fillers) k v k v ...: pairs of different keys and uniformly drawn values, then some of the keys again
/// in random order, each followed by its value, which is asked.          (2312.04927: multi-query associative recall)
class Recall : public Exercise<RecallOptions> {
 public:
  explicit Recall(const RecallOptions& options) : Exercise(options) {
    key_ = symbols_.add("k", options_.keys);
    value_ = symbols_.add("v", options_.values);
    filler_ = symbols_.add("~");
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto pairs = options_.pairs.draw(random, test);
    const auto keys = random.sample(options_.keys, pairs);
    std::vector<int32_t> values;
    SequenceWriter writer;
    for (const auto key : keys) {
      values.push_back(value_ + uniform_below(random, options_.values));
      writer.give(key_ + static_cast<int32_t>(key));
      writer.give(values.back());
    }
    for (int64_t i = 0; i < options_.gap; ++i) writer.give(filler_);
    for (const auto pair : random.sample(pairs, options_.queries.value_or(pairs))) {
      writer.give(key_ + static_cast<int32_t>(keys[static_cast<std::size_t>(pair)]));
      writer.ask(values[static_cast<std::size_t>(pair)]);
    }
    return writer.done();
  }

 private:
  int32_t key_, value_, filler_;
};

}  // namespace

void add_recall(Generators& all) {
  all.entry<Recall, RecallOptions>("recall", "values of keys that stood before (associative recall, one query or many)",
                                   "2312.04927");
}

}  // namespace headlab
