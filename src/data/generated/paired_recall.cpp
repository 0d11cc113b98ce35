#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct PairedRecallOptions : ExerciseOptions<PairedRecallOptions, Form::aligned> {
  int64_t keys = 32, values = 16, queries = 8;
  SizeRange pairs{24, 24};
  void describe(Fields& fields) override {
    fields.add("keys", keys, "different keys").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("pairs", pairs, "pairs of a key and a value");
    fields.add("queries", queries, "keys that are asked").at_least(1);
  }
  void rules(Problems& problems) const override {
    if (pairs.largest() > keys)
      problems.add("pairs", "expected at most keys (" + std::to_string(keys) +
                                ") pairs, since no key stands twice; got " + std::to_string(pairs.largest()));
    if (queries > pairs.smallest())
      problems.add("queries", "expected at most the fewest pairs (" + std::to_string(pairs.smallest()) + "), got " +
                                  std::to_string(queries));
  }
};

/// k3=v1 k0=v5 ... k0 k7 ...: pairs of different keys and uniformly drawn values, each pair one symbol, then some of
/// the keys in random order; at each of these its value is asked. What `recall` asks, in half as many symbols: one
/// layer finds a value, since key and value stand at one place.
class PairedRecall : public Exercise<PairedRecallOptions> {
 public:
  explicit PairedRecall(const PairedRecallOptions& options) : Exercise(options) {
    value_ = symbols_.add("v", options_.values);
    key_ = symbols_.add("k", options_.keys);
    for (int64_t key = 0; key < options_.keys; ++key) {
      const auto first = symbols_.add("k" + std::to_string(key) + "=v", options_.values);
      if (key == 0) pair_ = first;
    }
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto pairs = options_.pairs.draw(random, test);
    const auto keys = random.sample(options_.keys, pairs);
    std::vector<int32_t> values;
    GeneratedExample example;
    for (const auto key : keys) {
      values.push_back(uniform_below(random, options_.values));
      example.read.push_back(pair_ + static_cast<int32_t>(key * options_.values) + values.back());
      example.answer.push_back(GeneratedExample::none);
    }
    for (const auto pair : random.sample(pairs, options_.queries)) {
      example.read.push_back(key_ + static_cast<int32_t>(keys[static_cast<std::size_t>(pair)]));
      example.answer.push_back(value_ + values[static_cast<std::size_t>(pair)]);
    }
    return example;
  }

 private:
  int32_t value_, key_, pair_ = 0;
};

}  // namespace

void add_paired_recall(Generators& all) {
  all.entry<PairedRecall, PairedRecallOptions>(
      "paired_recall", "values of keys that stood before, a key and its value one symbol", "2609.38832");
}

}  // namespace headlab
