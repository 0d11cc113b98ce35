#include "src/spec/expect.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;
using Json = nlohmann::ordered_json;

namespace {

const Json results = Json::parse(R"({"full": {"bleu": 78.4}, "pruned": {"bleu": 77.6}, "same": 77.6})");

ExpectOptions claim(const std::string& that) {
  ExpectOptions options;
  options.claim = "c";
  options.that = that;
  return options;
}

bool holds(std::optional<std::string> ExpectOptions::*relation, const std::string& that, const std::string& bound,
           std::optional<double> within = std::nullopt) {
  ExpectOptions options = claim(that);
  options.*relation = bound;
  options.within = within;
  return judge(options, results).holds;
}

}  // namespace

TEST_CASE("each relation holds on its side of the bound") {
  CHECK(holds(&ExpectOptions::at_least, "2", "2"));
  CHECK_FALSE(holds(&ExpectOptions::at_least, "1.9", "2"));
  CHECK(holds(&ExpectOptions::at_most, "2", "2"));
  CHECK_FALSE(holds(&ExpectOptions::at_most, "2.1", "2"));
  CHECK(holds(&ExpectOptions::above, "2.1", "2"));
  CHECK_FALSE(holds(&ExpectOptions::above, "2", "2"));
  CHECK(holds(&ExpectOptions::below, "1.9", "2"));
  CHECK_FALSE(holds(&ExpectOptions::below, "2", "2"));
  CHECK(holds(&ExpectOptions::equals, "pruned.bleu", "same"));
  CHECK_FALSE(holds(&ExpectOptions::equals, "pruned.bleu", "full.bleu"));
  CHECK(holds(&ExpectOptions::equals, "pruned.bleu", "full.bleu", 1.0));
  CHECK_FALSE(holds(&ExpectOptions::equals, "pruned.bleu", "full.bleu", 0.5));
}

TEST_CASE("no relation holds of what is not a number") {
  Json broken = {{"x", std::numeric_limits<double>::quiet_NaN()}};
  for (auto relation : {&ExpectOptions::at_least, &ExpectOptions::at_most, &ExpectOptions::above, &ExpectOptions::below,
                        &ExpectOptions::equals}) {
    ExpectOptions options = claim("x");
    options.*relation = "x";
    CHECK_FALSE(judge(options, broken).holds);
  }
}

TEST_CASE("a verdict has both sides, and prints as a line") {
  ExpectOptions kept = claim("pruned.bleu"), more = claim("pruned.bleu");
  kept.at_least = "full.bleu - 3";
  more.equals = "full.bleu";
  more.within = 0.25;
  std::vector<Verdict> verdicts = {judge(kept, results), judge(more, results)};
  CHECK(verdict_text(verdicts) ==
        "holds          pruned.bleu >= full.bleu - 3          77.6 >= 75.4\n"
        "does not hold  pruned.bleu = full.bleu within 0.25   77.6 = 78.4\n");
  CHECK(to_json(verdicts[1]).dump() ==
        R"({"claim":"c","that":"pruned.bleu","relation":"equals","bound":"full.bleu","left":77.6,"right":78.4,)"
        R"("holds":false,"within":0.25})");
}

TEST_CASE("a claim about a name that the results do not have is an error") {
  ExpectOptions options = claim("pruned.blue");
  options.above = "1";
  CHECK_THROWS_AS(judge(options, results), Error);
}
