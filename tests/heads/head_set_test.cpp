#include "src/heads/head_set.h"

#include <cmath>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

const HeadTable table{{Stack::enc_self, {{0, 1, 2, 3}, {0, 3}}}, {Stack::dec_cross, {{1, 2}, {}}}};

HeadScores scores_in_order() {
  HeadScores scores;
  double value = 0;
  for (auto head : heads_of(table)) scores.heads[head] = value++;
  return scores;
}

SelectOptions fraction(double share, const std::string& scope = "global") {
  SelectOptions options;
  options.fraction = share;
  options.scope = scope;
  return options;
}

}  // namespace

TEST_CASE("names of heads are read and written the same") {
  CHECK(to_string(parse_head("dec.cross.10.7")) == "dec.cross.10.7");
  for (const auto* wrong : {"", "enc.self", "enc.self.1", "enc.self.x.1", "enc.self.-1.1", "enc.selb.0.1",
                            "enc.self.0.1.", "enc.self.0.99999999999999999999"})
    CHECK_THROWS_AS(parse_head(wrong), UsageError);
}

TEST_CASE("a head that does not exist is named with those that do") {
  CHECK_THROWS_WITH(check_head(table, parse_head("enc.self.9.1")),
                    "enc.self.9.1: the encoder has layers 0 to 1. Heads that exist: enc.self.0.0 ... enc.self.1.3, "
                    "dec.cross.0.0 ... dec.cross.1.2");
  CHECK_THROWS_WITH(check_head(table, parse_head("enc.self.1.1")), ContainsSubstring("enc.self.1 has heads 0, 3"));
  CHECK_THROWS_WITH(check_head(table, parse_head("dec.cross.1.0")), ContainsSubstring("dec.cross.1 has no heads left"));
  CHECK_THROWS_WITH(check_head(table, parse_head("dec.self.0.0")),
                    ContainsSubstring("the model has no dec.self heads"));
}

TEST_CASE("how unequal scores are is Gini's coefficient, by its definition") {
  auto scores = scores_in_order();
  double differences = 0, sum = 0;
  for (const auto& [a, x] : scores.heads)
    for (const auto& [b, y] : scores.heads) differences += std::abs(x - y);
  for (const auto& [head, value] : scores.heads) sum += value;
  CHECK(scores.gini().value() == Catch::Detail::Approx(differences / (2 * 8 * sum)));
  for (auto& [head, value] : scores.heads) value = 0.3;
  CHECK(scores.gini().value() == Catch::Detail::Approx(0).margin(1e-12));
  for (auto& [head, value] : scores.heads) value = head == parse_head("enc.self.1.3") ? 5 : 0;
  CHECK(scores.gini().value() == Catch::Detail::Approx(7.0 / 8));
  scores.heads.begin()->second = -1;
  CHECK_FALSE(scores.gini());
  CHECK_FALSE(HeadScores().gini());
}

TEST_CASE("the lowest scores are selected, globally, by stack and by layer") {
  CHECK(names_of(select_heads(table, scores_in_order(), fraction(0.5))) ==
        std::vector<std::string>{"enc.self.0.0", "enc.self.0.1", "enc.self.0.2", "enc.self.0.3"});
  CHECK(names_of(select_heads(table, scores_in_order(), fraction(0.5, "stack"))) ==
        std::vector<std::string>{"enc.self.0.0", "enc.self.0.1", "enc.self.0.2", "dec.cross.0.1"});
  CHECK(names_of(select_heads(table, scores_in_order(), fraction(0.5, "layer"))) ==
        std::vector<std::string>{"enc.self.0.0", "enc.self.0.1", "enc.self.1.0", "dec.cross.0.1"});
  auto options = fraction(0);
  CHECK(select_heads(table, scores_in_order(), options).empty());
  CHECK(select_heads(table, scores_in_order(), fraction(1)).size() == 8);
  options.fraction.reset();
  options.threshold = 1.5;
  CHECK(select_heads(table, scores_in_order(), options).size() == 2);
  options.threshold.reset();
  options.count = 3;
  options.highest = true;
  CHECK(names_of(select_heads(table, scores_in_order(), options)) ==
        std::vector<std::string>{"enc.self.1.3", "dec.cross.0.1", "dec.cross.0.2"});
}

TEST_CASE("scores of another model are refused") {
  auto scores = scores_in_order();
  scores.heads.erase(scores.heads.begin());
  CHECK_THROWS_WITH(select_heads(table, scores, fraction(0.5)),
                    "the scores are of another model: enc.self.0.0 has none");
  scores = scores_in_order();
  scores.heads[parse_head("enc.self.5.0")] = 1;
  CHECK_THROWS_WITH(select_heads(table, scores, fraction(0.5)),
                    ContainsSubstring("the scores are of another model: enc.self.5.0"));
}

TEST_CASE("random heads are a function of the seed, without repeats, each as likely") {
  CHECK((random_heads(table, fraction(0.5), 1) == random_heads(table, fraction(0.5), 1)));
  std::map<HeadId, int> taken;
  constexpr int draws = 4000;
  for (int seed = 0; seed < draws; ++seed) {
    const auto heads = random_heads(table, fraction(0.25), seed);
    REQUIRE(heads.size() == 2);
    REQUIRE((heads[0] != heads[1]));
    for (auto head : heads) ++taken[head];
  }
  // Each of 8 heads is drawn with p = 1/4: mean 1000, deviation sqrt(4000 * 3/16) = 27.4; 5 deviations.
  for (auto head : heads_of(table)) CHECK(std::abs(taken[head] - 1000) < 137);
}

TEST_CASE("removing heads keeps original names, and removing one twice is an error") {
  auto left = without(table, parse_heads({"enc.self.0.1", "enc.self.1.0"}));
  CHECK(left.at(Stack::enc_self)[0] == std::vector<int64_t>{0, 2, 3});
  CHECK(left.at(Stack::enc_self)[1] == std::vector<int64_t>{3});
  CHECK_THROWS_AS(without(left, parse_heads({"enc.self.0.1"})), UsageError);
  CHECK((table_from_json(to_json(left)) == left));
}

TEST_CASE("a file of scores reads back as it was written") {
  auto scores = scores_in_order();
  scores.method = "gradient";
  const auto back = HeadScores::from_json(scores.to_json(), "file");
  CHECK((back.heads == scores.heads));
  CHECK(back.method == "gradient");
  CHECK_THROWS_WITH(
      HeadScores::from_json(nlohmann::ordered_json::parse(R"({"heads": {"enc.self.0.0": "a"}})"), "s.json"),
      "s.json: heads.enc.self.0.0: expected a number, got \"a\"");
}
