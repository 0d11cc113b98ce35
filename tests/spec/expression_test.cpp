#include "src/spec/expression.h"

#include <nlohmann/json.hpp>
#include <random>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;
using Json = nlohmann::ordered_json;

namespace {

const Json results = Json::parse(R"({
  "full": {"bleu": 78.4, "signature": "nrefs:1", "lost": null},
  "pruned": {"bleu": 77.5},
  "random": [{"bleu": 40}, {"bleu": 44}],
  "ablate": {"enc.self.0.3": {"bleu": 70}, "enc": {"self": 1}},
  "curve": [1, 2, 6],
  "empty": []
})");

double value(const std::string& text) { return Expression::parse(text).evaluate(results); }

std::string message(const std::string& text) {
  try {
    value(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("arithmetic has the usual precedence and goes from the left") {
  CHECK(value("1 + 2 * 3") == 7);
  CHECK(value("(1 + 2) * 3") == 9);
  CHECK(value("10 - 4 - 3") == 3);
  CHECK(value("24 / 4 / 2") == 3);
  CHECK(value("-2 * -3") == 6);
  CHECK(value("2 - -3") == 5);
  CHECK(value("--+-2") == -2);
  CHECK(value("-(1 + 2)") == -3);
  CHECK(value("1e-2*1.5E+2") == Approx(1.5));
  CHECK(value(" .5 + 1 ") == 1.5);
}

TEST_CASE("names are paths into the results") {
  CHECK(value("full.bleu-3") == Approx(75.4));
  CHECK(value("ablate.enc.self.0.3.bleu") == 70);
  CHECK(value("ablate.enc.self") == 1);
  CHECK(value("random.1.bleu") == 44);
  CHECK(value("curve.2") == 6);
}

TEST_CASE("functions take values and lists") {
  CHECK(value("mean(random.bleu)") == 42);
  CHECK(value("min(random.bleu, 3)") == 3);
  CHECK(value("max(curve) - min(curve)") == 5);
  CHECK(value("mean(curve, random.bleu)") == Approx(93.0 / 5));
  CHECK(value("abs(pruned.bleu - full.bleu)") == Approx(0.9));
  CHECK(value("max(1, abs (-4), 2)") == 4);
}

TEST_CASE("names of an expression are known before there are results") {
  CHECK(Expression::parse("a.b + mean(c, a.b) * 2").names() == std::vector<std::string>{"a.b", "c"});
}

TEST_CASE("syntax errors have their place and are found before there are results") {
  auto wrong = [](const std::string& text) {
    try {
      Expression::parse(text);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(wrong("") == "syntax error at character 1: expected a number, a name or \"(\", got the end");
  CHECK(wrong("a +") == "syntax error at character 4: expected a number, a name or \"(\", got the end");
  CHECK(wrong("a b") == "syntax error at character 3: expected an operator or the end, got \"b\"");
  CHECK(wrong("(a") == "syntax error at character 3: expected an operator or \")\", got the end");
  CHECK(wrong("mean(a") == "syntax error at character 7: expected an operator, \",\" or \")\", got the end");
  CHECK(wrong("mean()") == "syntax error at character 6: expected a number, a name or \"(\", got \")\"");
  CHECK(wrong("1 + men(a)") ==
        "syntax error at character 5: unknown function \"men\"; did you mean \"mean\"? (exists: abs, max, mean, min)");
  CHECK(wrong("abs(a, b)") == "syntax error at character 1: abs takes one value, got 2");
  CHECK(wrong("a. b") == "syntax error at character 3: expected a name after \".\", got \" b\"");
  CHECK(wrong("2x") == "syntax error at character 1: expected a number, a name or \"(\", got \"2x\"");
  CHECK(wrong("1e999") == "syntax error at character 1: expected a number that a double can hold, got \"1e999\"");
  CHECK(wrong("a >= b") == "syntax error at character 3: expected an operator or the end, got \">= b\"");
  CHECK_THAT(wrong(std::string(5000, '(')), ContainsSubstring("nested deeper than 100"));
}

TEST_CASE("a name that the results do not have is refused with the nearest that they have") {
  CHECK(message("prunned.bleu + 1") ==
        "\"prunned.bleu\" is not among the results; did you mean \"pruned.bleu\"? "
        "(nearest: pruned.bleu, random.bleu, full.bleu, curve, empty)");
  CHECK_THROWS_WITH(Expression::parse("a").evaluate(Json::object()),
                    "\"a\" is not among the results; there are no results");
}

TEST_CASE("what is no number is refused") {
  CHECK(message("full.signature") == "\"full.signature\" among the results is \"nrefs:1\", not a number");
  CHECK(message("full.lost") == "\"full.lost\" among the results is null, not a number");
  CHECK(message("full") == "\"full\" among the results is an object, not a number");
  CHECK(message("random.bleu + 1") == "\"random.bleu\" is a list of 2; take its mean(), min() or max()");
  CHECK(message("curve") == "\"curve\" is a list of 3; take its mean(), min() or max()");
  CHECK(message("mean(empty)") == "mean() of an empty list");
  CHECK(message("1 / (full.bleu - 78.4)") == "division by zero in \"1 / (full.bleu - 78.4)\"");
}

TEST_CASE("no expression crashes, however long or odd") {
  std::string sum = "1", nested = "1";
  for (int i = 0; i < 200'000; ++i) sum += "+1";
  CHECK(value(sum) == 200'001);
  CHECK(value(std::string(100'000, '-') + "1") == 1);
  std::mt19937 random(5);
  const std::string alphabet = "ab.01+-*/(), meanx";
  int sound = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::size_t length = random() % 12; length-- > 0;) text += alphabet[random() % alphabet.size()];
    sound += message(text) == "accepted";
  }
  CHECK(sound > 100);
}
