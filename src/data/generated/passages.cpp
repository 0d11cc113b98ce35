#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct PassagesOptions : ExerciseOptions<PassagesOptions, Form::sequence> {
  int64_t topics = 16, keys = 6, values = 16, facts = 3;
  SizeRange passages{8, 8};
  void describe(Fields& fields) override {
    fields.add("topics", topics, "different topics").at_least(1);
    fields.add("keys", keys, "different keys; a key can stand in several passages").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("facts", facts, "keys and values of a passage").at_least(1);
    fields.add("passages", passages, "passages of a text");
  }
  void rules(Problems& problems) const override {
    if (passages.largest() > topics)
      problems.add("passages", "expected at most topics (" + std::to_string(topics) + ") passages, got " +
                                   std::to_string(passages.largest()));
    if (facts > keys)
      problems.add("facts", "expected at most keys (" + std::to_string(keys) + "), got " + std::to_string(facts));
  }
};

/// # topic k v k v ... # topic k v ... ? topic key: the value that the key has in the passage of that topic is asked.
class Passages : public Exercise<PassagesOptions> {
 public:
  explicit Passages(const PassagesOptions& options) : Exercise(options) {
    start_ = symbols_.add("#");
    question_ = symbols_.add("?");
    topic_ = symbols_.add("t", options_.topics);
    key_ = symbols_.add("k", options_.keys);
    value_ = symbols_.add("v", options_.values);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto count = options_.passages.draw(random, test);
    const auto topics = random.sample(options_.topics, count);
    const auto gold = static_cast<std::size_t>(random.below(static_cast<uint64_t>(count)));
    const auto asked = static_cast<std::size_t>(random.below(static_cast<uint64_t>(options_.facts)));
    int32_t key = 0, value = 0;
    SequenceWriter writer;
    for (std::size_t p = 0; p < topics.size(); ++p) {
      writer.give(start_);
      writer.give(topic_ + static_cast<int32_t>(topics[p]));
      const auto keys = random.sample(options_.keys, options_.facts);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto its_key = key_ + static_cast<int32_t>(keys[i]),
                   its_value = value_ + uniform_below(random, options_.values);
        writer.give(its_key);
        writer.give(its_value);
        if (p == gold && i == asked) {
          key = its_key;
          value = its_value;
        }
      }
    }
    writer.give(question_);
    writer.give(topic_ + static_cast<int32_t>(topics[gold]));
    writer.give(key);
    writer.ask(value);
    return writer.done();
  }

 private:
  int32_t start_, question_, topic_, key_, value_;
};

}  // namespace

void add_passages(Generators& all) {
  all.entry<Passages, PassagesOptions>("passages", "a value out of the passage of the right topic, among others");
}

}  // namespace headlab
