#include "modules/base/nearest.h"

#include "tests/catch.h"

using namespace headlab;

TEST_CASE("the nearest name is what a person most likely meant") {
  std::vector<std::string> names = {"heads", "head_width", "warmup_steps", "dropout", "bias"};
  CHECK(nearest_name("headz", names) == "heads");
  CHECK(nearest_name("head", names) == "heads");
  CHECK(nearest_name("dropuot", names) == "dropout");
  CHECK(nearest_name("Bias", names) == "bias");
  CHECK(nearest_name("warmup", names) == "warmup_steps");
  CHECK(nearest_name("head_widht", names) == "head_width");
}

TEST_CASE("a name that is like none suggests none") {
  CHECK(nearest_name("zebra", {"heads", "bias"}) == "");
  CHECK(nearest_name("a", {"b"}) == "");
  CHECK(nearest_name("", {"heads", ""}) == "");
  CHECK(nearest_name("x", {}) == "");
  CHECK(nearest_name(std::string(100'000, 'h'), {"heads"}) == "");
}

TEST_CASE("nearest names are ranked, however far they are") {
  CHECK(nearest_names("bleu", {"loss", "blue", "bleu", "chrf"}, 2) == std::vector<std::string>{"bleu", "blue"});
  CHECK(nearest_names("x", {}, 3).empty());
}

TEST_CASE("an unknown name says what exists") {
  CHECK(unknown_name("position", "ropee", {"none", "rope"}) ==
        "unknown position \"ropee\"; did you mean \"rope\"? (exists: none, rope)");
  CHECK(unknown_name("gate", "x", {}) == "unknown gate \"x\" (exists: none)");
}

TEST_CASE("quoted text is one line, short, and cut between characters") {
  CHECK(in_quotes("a\"b\\c\nd\te\x01") == "\"a\\\"b\\\\c\\nd\\te\\u0001\"");
  std::string umlauts;
  for (int i = 0; i < 61; ++i) umlauts += "ä";
  CHECK(in_quotes(umlauts) == "\"" + umlauts.substr(0, 120) + "...\"");
  CHECK(in_quotes(umlauts.substr(0, 120)) == "\"" + umlauts.substr(0, 120) + "\"");
}

TEST_CASE("names out of a file are listed without what would break a message's line, and not without end") {
  CHECK(listed({}) == "none");
  CHECK(listed({"a", "b\nc\td\x1B", std::string(70, 'x')}) == "a, b\\nc\\td\\u001b, " + std::string(60, 'x') + "...");
  CHECK(in_quotes("a\"b\\") == "\"a\\\"b\\\\\"");
  const auto many = listed(std::vector<std::string>(107, "n"));
  CHECK(many.substr(many.size() - 14) == ", n and 7 more");
}
