#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct MatchOptions : ExerciseOptions<MatchOptions, Form::aligned> {
  int64_t keys = 16, values = 8;
  SizeRange length{64, 64};
  double questions = 0.5;
  std::string asked = "both";
  void describe(Fields& fields) override {
    fields.add("keys", keys, "different keys").at_least(1);
    fields.add("values", values, "different values").at_least(2);
    fields.add("length", length, "symbols of a text");
    fields.add("questions", questions, "share of the symbols that are questions").above(0).below(1);
    fields
        .add("asked", asked,
             "value: that of a question's key; before: at each pair, the key of the symbol before; or both")
        .one_of({"both", "value", "before"});
  }
  void rules(Problems& problems) const override {
    if (length.smallest() < 2)
      problems.add("length", "expected at least 2 symbols, so that one stands before another; got " +
                                 std::to_string(length.smallest()));
  }
};

/// k3=v5 k1=v0 k3? ...: pairs of a key and its value, which is the same all through a text, and questions, each for a
/// key that stood before with its value. Of k3? the answer is v5, wherever k3=v5 stands; of a pair it is the key of the
/// symbol just before: one is found by what it is, the other by where it stands.
class Match : public Exercise<MatchOptions> {
 public:
  explicit Match(const MatchOptions& options) : Exercise(options) {
    std::vector<std::string> pairs, questions;
    for (int64_t k = 0; k < options_.keys; ++k) {
      const auto key = "k" + std::to_string(k);
      for (int64_t v = 0; v < options_.values; ++v) pairs.push_back(key + "=v" + std::to_string(v));
      questions.push_back(key + "?");
    }
    pair_ = symbols_.append(pairs);
    question_ = symbols_.append(questions);
    key_ = symbols_.add("k", options_.keys);
    value_ = symbols_.add("v", options_.values);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    std::vector<int32_t> value_of;
    for (int64_t k = 0; k < options_.keys; ++k) value_of.push_back(uniform_below(random, options_.values));
    std::vector<int32_t> stood;  // keys, once each
    GeneratedExample example;
    auto before = GeneratedExample::none;
    for (auto left = options_.length.draw(random, test); left > 0; --left) {
      bool question = !stood.empty() && random.uniform() < options_.questions;
      if (left == 1 && options_.asked != "both")
        question = options_.asked == "value";  // so that each text asks something
      if (question) {
        before = stood[static_cast<std::size_t>(random.below(stood.size()))];
        example.read.push_back(question_ + before);
        example.answer.push_back(options_.asked == "before" ? GeneratedExample::none
                                                            : value_ + value_of[static_cast<std::size_t>(before)]);
        continue;
      }
      const auto key = uniform_below(random, options_.keys);
      example.read.push_back(pair_ + key * static_cast<int32_t>(options_.values) +
                             value_of[static_cast<std::size_t>(key)]);
      example.answer.push_back(options_.asked == "value" || before < 0 ? GeneratedExample::none : key_ + before);
      if (std::find(stood.begin(), stood.end(), key) == stood.end()) stood.push_back(key);
      before = key;
    }
    return example;
  }

 private:
  int32_t pair_, question_, key_, value_;
};

}  // namespace

void add_match(Generators& all) {
  all.entry<Match, MatchOptions>("match", "values of keys that stood anywhere before, and the symbol just before");
}

}  // namespace headlab
