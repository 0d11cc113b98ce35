#include <algorithm>
#include <cstdlib>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct OffsetsOptions : ExerciseOptions<OffsetsOptions, Form::aligned> {
  int64_t vocabulary = 16;
  SizeRange length{24, 24};
  std::vector<int64_t> offsets{1};
  std::string rule = "joint";
  void describe(Fields& fields) override {
    fields.add("vocabulary", vocabulary, "different symbols").at_least(2);
    fields.add("length", length, "symbols of a text");
    fields.add("offsets", offsets, "how far back each looks; negative: ahead, for models that see what follows")
        .unit("symbols");
    fields
        .add("rule", rule,
             "joint: all of the symbols there, as one answer; sum: their sum; symbol: the one whose turn the symbol "
             "read says (its number modulo the number of offsets); flag: the one that the first symbol says")
        .one_of({"joint", "sum", "symbol", "flag"});
  }
  void rules(Problems& problems) const override {
    if (offsets.empty()) problems.add("offsets", "expected at least one offset");
    double answers = 1;
    for (const auto offset : offsets) {
      answers *= static_cast<double>(vocabulary);
      if (std::abs(offset) >= length.smallest())
        problems.add("offsets", "expected offsets below the shortest text (" + std::to_string(length.smallest()) +
                                    "), got " + std::to_string(offset));
    }
    if (rule == "joint" && answers > 100000)
      problems.add("offsets", "expected at most 100000 joint answers (vocabulary ^ offsets), got " +
                                  std::to_string(static_cast<int64_t>(answers)));
  }
};

/// At each symbol x_t of a uniformly drawn text the answer is
///   joint   (x_{t-o1}, x_{t-o2}, ...), for several offsets a symbol of its own, "s3,s1"
///   sum     the sum of those numbers modulo the vocabulary
///   symbol  x_{t-o}, o = offsets[x_t mod their number]
///   flag    x_{t-o}, o chosen by a flag f0, f1, ... that stands before the text
/// Where an offset points out of the text (or at the flag), nothing is asked.
class OffsetsExercise : public Exercise<OffsetsOptions> {
 public:
  explicit OffsetsExercise(const OffsetsOptions& options) : Exercise(options) {
    const auto count = static_cast<int64_t>(options_.offsets.size());
    first_ = symbols_.add("s", options_.vocabulary);
    if (options_.rule == "flag") flag_ = symbols_.add("f", count);
    if (options_.rule == "joint" && count > 1) {
      int64_t answers = 1;
      for (int64_t i = 0; i < count; ++i) answers *= options_.vocabulary;
      std::vector<std::string> names;
      for (int64_t answer = 0; answer < answers; ++answer) {
        std::string name;
        for (auto rest = answer, unit = answers / options_.vocabulary; unit > 0;
             rest %= unit, unit /= options_.vocabulary)
          name += (name.empty() ? "s" : ",s") + std::to_string(rest / unit);
        names.push_back(name);
      }
      joint_ = symbols_.append(names);
    }
  }

  GeneratedExample draw(Random& random, bool test) const override {
    const auto count = static_cast<int64_t>(options_.offsets.size());
    const auto length = options_.length.draw(random, test);
    std::vector<int32_t> text;
    for (int64_t t = 0; t < length; ++t) text.push_back(uniform_below(random, options_.vocabulary));
    const auto flag = options_.rule == "flag" ? static_cast<int64_t>(random.below(static_cast<uint64_t>(count))) : -1;
    GeneratedExample example;
    if (flag >= 0) {
      example.read.push_back(flag_ + static_cast<int32_t>(flag));
      example.answer.push_back(GeneratedExample::none);
    }
    for (int64_t t = 0; t < length; ++t) {
      const auto x = text[static_cast<std::size_t>(t)];
      std::vector<int64_t> offsets = options_.offsets;
      if (options_.rule == "symbol") offsets = {options_.offsets[static_cast<std::size_t>(x % count)]};
      if (flag >= 0) offsets = {options_.offsets[static_cast<std::size_t>(flag)]};
      int64_t number = 0;
      bool inside = true;
      for (const auto offset : offsets) {
        const auto at = t - offset;
        inside = inside && at >= 0 && at < length;
        if (inside)
          number = number * (options_.rule == "sum" ? 1 : options_.vocabulary) + text[static_cast<std::size_t>(at)];
      }
      if (options_.rule == "sum") number %= options_.vocabulary;
      example.read.push_back(first_ + x);
      const auto base = options_.rule == "joint" && count > 1 ? joint_ : first_;
      example.answer.push_back(inside ? base + static_cast<int32_t>(number) : GeneratedExample::none);
    }
    return example;
  }

 private:
  int32_t first_ = 0, flag_ = 0, joint_ = 0;
};

}  // namespace

void add_offsets(Generators& all) {
  all.entry<OffsetsExercise, OffsetsOptions>("offsets", "the symbols some places back (or ahead), at each symbol");
}

}  // namespace headlab
