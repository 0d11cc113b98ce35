#include "src/metrics/labels.h"

#include "modules/base/error.h"
#include "src/metrics/answers.h"
#include "src/metrics/names.h"
#include "tests/catch.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

using Tags = std::vector<std::string>;

// "PER 0-1, LOC 3-3"
std::string text_of(const Tags& tags) {
  std::string text;
  for (const auto& entity : entities_of(tags))
    text += (text.empty() ? "" : ", ") + entity.type + " " + std::to_string(entity.first) + "-" +
            std::to_string(entity.last);
  return text;
}

}  // namespace

TEST_CASE("entities are what conlleval reads out of tags", "[metrics]") {
  CHECK(text_of({"O", "B-PER", "I-PER", "O", "B-LOC"}) == "PER 1-2, LOC 4-4");
  CHECK(text_of({"B-PER", "B-PER", "I-PER"}) == "PER 0-0, PER 1-2");
  CHECK(text_of({"I-PER", "I-PER", "O", "I-LOC"}) == "PER 0-1, LOC 3-3");  // IOB1: I begins one after O
  CHECK(text_of({"B-PER", "I-LOC", "I-LOC"}) == "PER 0-0, LOC 1-2");       // another type ends it and begins one
  CHECK(text_of({"I-LOC", "B-LOC"}) == "LOC 0-0, LOC 1-1");
  CHECK(text_of({"B-PER", "I-PER", "E-PER", "I-PER", "S-PER", "I-PER"}) == "PER 0-2, PER 3-3, PER 4-4, PER 5-5");
  CHECK(text_of({"B-a-b", "I-a-b"}) == "a-b 0-1");  // the type is all after the first dash
  CHECK(text_of({"O", "O"}).empty());
  CHECK(text_of({}).empty());
}

TEST_CASE("entity F1 counts exact entities of the whole corpus", "[metrics]") {
  // Sentence 1: gold PER 0-1 and LOC 3; found PER 0-1 and ORG 3. Sentence 2: gold PER 0-1; found PER 0 (too short) and
  // LOC 2.
  const std::vector<Tags> gold{{"B-PER", "I-PER", "O", "B-LOC"}, {"B-PER", "I-PER", "O"}};
  const std::vector<Tags> found{{"B-PER", "I-PER", "O", "B-ORG"}, {"B-PER", "O", "B-LOC"}};
  const auto score = entity_f1(gold, found);
  CHECK(score.precision == Approx(1.0 / 4));
  CHECK(score.recall == Approx(1.0 / 3));
  CHECK(score.f1 == Approx(2.0 / 7));
  CHECK(entity_f1(gold, gold).f1 == 1);
  CHECK(entity_f1({{"O"}}, {{"O"}}).f1 == 0);
  CHECK_THROWS_WITH(entity_f1(gold, {found[0]}), ContainsSubstring("got 1 and 2"));
  CHECK_THROWS_WITH(entity_f1({{"O", "O"}}, {{"O"}}), ContainsSubstring("sentence 1: expected as many"));
}

TEST_CASE("macro F1 is the mean over the classes that occur", "[metrics]") {
  // class 0: 2 of 3 found right, 2 predicted -> F1 4/5; class 1: 1 right, 2 predicted, 1 gold -> 2/3; class 2: gold
  // none, predicted none.
  CHECK(macro_f1({0, 0, 0, 1}, {0, 0, 1, 1}) == Approx((4.0 / 5 + 2.0 / 3) / 2));
  // class 3 is predicted, never gold: F1 0 counts.
  CHECK(macro_f1({0, 0}, {0, 3}) == Approx((2.0 / 3 + 0) / 2));
  CHECK(macro_f1({5}, {5}) == 1);
  CHECK_THROWS_AS(macro_f1({}, {}), Error);
  CHECK_THROWS_AS(macro_f1({1}, {1, 2}), Error);
}

TEST_CASE("answers are compared as SQuAD compares them", "[metrics]") {
  CHECK(normalised_answer(" The  Quick, brown-fox's An a\u00A0DEN ") == "quick brownfoxs den");
  CHECK(exact_match("the cat", "Cat.") == 1);
  CHECK(exact_match("cat", "cats") == 0);
  CHECK(answer_f1("the old red house", "a red house") == Approx(2 * (2.0 / 2) * (2.0 / 3) / (1 + 2.0 / 3)));
  CHECK(answer_f1("x x y", "x x x") == Approx(2.0 / 3));  // x counts twice
  CHECK(answer_f1("x", "y") == 0);
  CHECK(answer_f1("the", "a") == 1);  // nothing is left of either
  CHECK(answer_f1("the", "x") == 0);
}

TEST_CASE("metrics know their names and which way is better", "[metrics]") {
  CHECK(smaller_is_better("word_perplexity"));
  CHECK(smaller_is_better("bits_per_character"));
  CHECK_FALSE(smaller_is_better("entity_f1"));
  CHECK(smaller_is_better("my_loss"));
  CHECK_FALSE(smaller_is_better("whatever"));
  CHECK(find_metric("entity_f1")->title == "entity F1");
  CHECK(find_metric("nonsense") == nullptr);
}
