#include "src/spec/compare.h"

#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;
using Json = nlohmann::ordered_json;

namespace {

// a.x - b.x is 1, 2 and 3: mean 2, interval 2 +- 4.30265 / sqrt(3) = -0.484 to 4.484.
const std::vector<Json> three_seeds{Json::parse(R"({"a": {"x": 2}, "b": {"x": 1}})"),
                                    Json::parse(R"({"a": {"x": 4}, "b": {"x": 2}})"),
                                    Json::parse(R"({"a": {"x": 6}, "b": {"x": 3}})")};

CompareOptions a_against(std::optional<std::string> ExpectOptions::*relation, const std::string& bound) {
  CompareOptions options;
  options.claim = "c";
  options.that = "a.x";
  options.*relation = bound;
  return options;
}

}  // namespace

TEST_CASE("a comparison holds where the whole interval is on its side") {
  CHECK_FALSE(compare(a_against(&ExpectOptions::above, "b.x"), three_seeds).verdict.holds);  // -0.484 is not above 0
  CHECK(compare(a_against(&ExpectOptions::above, "b.x - 0.5"), three_seeds).verdict.holds);
  CHECK_FALSE(compare(a_against(&ExpectOptions::below, "b.x + 4"), three_seeds).verdict.holds);
  CHECK(compare(a_against(&ExpectOptions::below, "b.x + 5"), three_seeds).verdict.holds);
  CHECK(compare(a_against(&ExpectOptions::at_least, "2 * b.x"), three_seeds)
            .verdict.holds);  // a.x is 2 b.x, with no spread
  CHECK(compare(a_against(&ExpectOptions::at_most, "2 * b.x"), three_seeds).verdict.holds);
  CHECK_FALSE(compare(a_against(&ExpectOptions::above, "2 * b.x"), three_seeds).verdict.holds);
  auto equal = a_against(&ExpectOptions::equals, "b.x + 2");
  equal.within = 2.4;
  CHECK_FALSE(compare(equal, three_seeds).verdict.holds);
  equal.within = 2.5;
  CHECK(compare(equal, three_seeds).verdict.holds);
}

TEST_CASE("an interval on both sides is not enough evidence; one on the other side does not hold") {
  const auto answer = [](const CompareOptions& claim) { return compare(claim, three_seeds).answer(); };
  CHECK(answer(a_against(&ExpectOptions::above, "b.x - 0.5")) == "holds");
  CHECK(answer(a_against(&ExpectOptions::above, "b.x")) == "not enough evidence");
  CHECK(answer(a_against(&ExpectOptions::above, "b.x + 4.5")) == "does not hold");
  CHECK(answer(a_against(&ExpectOptions::below, "b.x + 4")) == "not enough evidence");
  CHECK(answer(a_against(&ExpectOptions::below, "b.x - 0.5")) == "does not hold");
  auto equal = a_against(&ExpectOptions::equals, "b.x + 2");  // -2.484 to 2.484
  CHECK(answer(equal) == "not enough evidence");
  equal.within = 2.4;
  CHECK(answer(equal) == "not enough evidence");
  equal.within = 2.5;
  CHECK(answer(equal) == "holds");
  equal.equals = "b.x - 3";  // 2.516 to 7.484
  CHECK(answer(equal) == "does not hold");
  equal.within = 3;
  CHECK(answer(equal) == "not enough evidence");
  // One seed has no interval: its difference decides.
  CHECK(compare(a_against(&ExpectOptions::above, "b.x"), {three_seeds[0]}).answer() == "holds");
  CHECK(compare(a_against(&ExpectOptions::below, "b.x"), {three_seeds[0]}).answer() == "does not hold");
}

TEST_CASE("a comparison says means, difference, interval and seeds") {
  const auto made = compare(a_against(&ExpectOptions::above, "b.x"), three_seeds);
  CHECK(made.differences == std::vector<double>{1, 2, 3});
  CHECK(comparison_text({made}) ==
        "not enough evidence  a.x > b.x   4 > 2; difference +2 (-0.4841 to +4.484), 3 seeds\n");
  const auto one = compare(a_against(&ExpectOptions::above, "b.x"), {three_seeds[0]});
  CHECK(measured_text(one) == "2 > 1; difference +1, 1 seed");
  CHECK_THROWS_AS(compare(a_against(&ExpectOptions::above, "b.y"), three_seeds), Error);
  CHECK_THROWS_AS(compare(a_against(&ExpectOptions::above, "b.x"), {}), Error);
}
