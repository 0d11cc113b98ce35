#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

struct SentimentOptions : ExerciseOptions<SentimentOptions, Form::label> {
  int64_t words = 8, negators = 2, neutral = 12;
  SizeRange length{5, 24};
  void describe(Fields& fields) override {
    fields.add("words", words, "different positive words, and as many negative ones").at_least(1);
    fields.add("negators", negators, "different words that turn the next one round").at_least(0);
    fields.add("neutral", neutral, "different words without sentiment").at_least(0);
    fields.add("length", length, "words of a text");
  }
};

/// A text of uniformly drawn words; its sentiment is the number of positive words less that of negative ones, a word
/// after a negator counting the other way round. The class is the sign; texts of sentiment 0 are drawn again.
class Sentiment : public Exercise<SentimentOptions> {
 public:
  explicit Sentiment(const SentimentOptions& options) : Exercise(options) {
    positive_ = symbols_.add("good", options_.words);
    negative_ = symbols_.add("bad", options_.words);
    negator_ = symbols_.add("not", options_.negators);
    neutral_ = symbols_.add("word", options_.neutral);
  }
  std::vector<std::string> classes() const override { return {"negative", "positive"}; }
  GeneratedExample draw(Random& random, bool test) const override {
    const auto length = options_.length.draw(random, test);
    for (;;) {
      GeneratedExample example;
      int64_t sentiment = 0;
      bool turned = false;
      for (int64_t i = 0; i < length; ++i) {
        const auto word = positive_ + uniform_below(random, 2 * options_.words + options_.negators + options_.neutral);
        const int64_t value = word < negative_ ? 1 : word < negator_ ? -1 : 0;
        sentiment += turned ? -value : value;
        turned = word >= negator_ && word < neutral_;
        example.read.push_back(word);
      }
      if (sentiment == 0) continue;
      example.answer = {sentiment > 0 ? 1 : 0};
      return example;
    }
  }

 private:
  int32_t positive_, negative_, negator_, neutral_;
};

}  // namespace

void add_sentiment(Generators& all) {
  all.entry<Sentiment, SentimentOptions>("sentiment", "whether good words or bad ones prevail, with negation",
                                         "2310.14505");
}

}  // namespace headlab
