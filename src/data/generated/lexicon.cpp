#include <algorithm>

#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct LexiconOptions : ExerciseOptions<LexiconOptions, Form::pair> {
  int64_t words = 20, lexicon_seed = 1;
  std::vector<std::string> orders{"swap_even"};
  SizeRange length{4, 10};
  void describe(Fields& fields) override {
    fields.add("words", words, "words of each language").at_least(2);
    fields
        .add("orders", orders,
             "the word order of each source language against the target: as it is, neighbours swapped where the "
             "left word is even, or reversed")
        .one_of({"keep", "swap_even", "reverse"});
    fields.add("length", length, "words of a sentence");
    fields.add("lexicon_seed", lexicon_seed, "seed of the lexicons").at_least(0);
  }
  void rules(Problems& problems) const override {
    if (orders.empty() || orders.size() > 19)  // a, b, ... s; t is the target
      problems.add("orders", "expected the orders of 1 to 19 languages, got " + std::to_string(orders.size()));
  }
};

/// Translation without meaning: each word of a source language (a0, a1, ...; b0, ...) has one translation t0, t1, ...
/// by a random lexicon of that language, and the words stand in another order. Languages share no word, so that a
/// sentence shows its own. swap_even: from the left, a word of even number changes places with the one after it, and
/// both are done.
class Lexicon : public Exercise<LexiconOptions> {
 public:
  explicit Lexicon(const LexiconOptions& options) : Exercise(options) {
    for (std::size_t language = 0; language < options_.orders.size(); ++language) {
      first_.push_back(symbols_.add(std::string(1, static_cast<char>('a' + language)), options_.words));
      lexicon_.push_back(
          Random::stream(static_cast<uint64_t>(options_.lexicon_seed), {language}).permutation(options_.words));
    }
    target_ = symbols_.add("t", options_.words);
  }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto language = static_cast<std::size_t>(random.below(first_.size()));
    std::vector<int64_t> words;
    for (auto left = options_.length.draw(random, test); left > 0; --left)
      words.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(options_.words))));
    GeneratedExample example;
    for (const auto word : words) example.source.push_back(first_[language] + static_cast<int32_t>(word));
    const auto& order = options_.orders[language];
    if (order == "reverse") std::reverse(words.begin(), words.end());
    if (order == "swap_even")
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] % 2 == 0) {
          std::swap(words[i], words[i + 1]);
          ++i;
        }
    for (const auto word : words)
      example.read.push_back(target_ + static_cast<int32_t>(lexicon_[language][static_cast<std::size_t>(word)]));
    return example;
  }

 private:
  std::vector<int32_t> first_;
  std::vector<std::vector<int64_t>> lexicon_;
  int32_t target_;
};

}  // namespace

void add_lexicon(Generators& all) {
  all.entry<Lexicon, LexiconOptions>("lexicon",
                                     "word-by-word translation with another word order, from one or several languages");
}

}  // namespace headlab
