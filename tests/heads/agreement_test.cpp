#include "src/heads/agreement.h"

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

HeadScores scores(const std::vector<double>& encoder, const std::vector<double>& decoder = {}) {
  HeadScores made;
  for (std::size_t i = 0; i < encoder.size(); ++i)
    made.heads[{Stack::enc_self, 0, static_cast<int64_t>(i)}] = encoder[i];
  for (std::size_t i = 0; i < decoder.size(); ++i)
    made.heads[{Stack::dec_self, 0, static_cast<int64_t>(i)}] = decoder[i];
  return made;
}

}  // namespace

TEST_CASE(
    "scores agree by the order they give: 1 for the same, -1 for the reverse, 1 - 6 sum d^2 / (n^3 - n) without ties",
    "[heads]") {
  const auto one = scores({0.1, 5, 2, 3});
  CHECK(*rank_correlation(one, scores({-7, 100, 0, 1})) == Approx(1));
  CHECK(*rank_correlation(one, scores({4, 1, 3, 2})) == Approx(-1));
  // ranks 0 3 1 2 and 1 3 0 2: d^2 = 1 0 1 0
  CHECK(*rank_correlation(one, scores({2, 9, 1, 8})) == Approx(1 - 6 * 2.0 / 60));
}

TEST_CASE("equal scores share a rank, and where all are equal there is nothing to tell", "[heads]") {
  // ranks 0 1.5 1.5 3 and 0 1 2 3, about 1.5: 4.5 / sqrt(4.5 * 5)
  CHECK(*rank_correlation(scores({1, 2, 2, 3}), scores({1, 2, 3, 4})) == Approx(4.5 / std::sqrt(4.5 * 5)));
  CHECK_FALSE(rank_correlation(scores({1, 1, 1}), scores({1, 2, 3})).has_value());
  CHECK_FALSE(rank_correlation(scores({1}), scores({2})).has_value());
}

TEST_CASE("agreement is told of all heads and of each stack", "[heads]") {
  const auto told = agreement(scores({1, 2, 3}, {4, 5, 6}), scores({1, 2, 3}, {6, 5, 4}));
  CHECK(told["enc.self"] == 1.0);
  CHECK(told["dec.self"] == -1.0);
  // ranks 0 1 2 3 4 5 and 0 1 2 5 4 3: d^2 = 4 + 4
  CHECK(told["all"].get<double>() == Approx(1 - 6 * 8.0 / 210));
  CHECK(agreement(scores({1, 2}, {3}), scores({1, 2}, {3}))["dec.self"].is_null());
}

TEST_CASE("scores of other heads are refused", "[heads]") {
  CHECK_THROWS_WITH(rank_correlation(scores({1, 2}), scores({1, 2, 3})), ContainsSubstring("got 2 and 3 heads"));
  CHECK_THROWS_WITH(rank_correlation(scores({1}, {2}), scores({1, 2})), ContainsSubstring("without dec.self.0.0"));
}
