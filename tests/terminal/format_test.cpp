#include "src/terminal/format.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

using namespace headlab;

TEST_CASE("counts are written with commas", "[terminal]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(12000) == "12,000");
  CHECK(with_commas(1234567) == "1,234,567");
  CHECK(with_commas(-100) == "-100");
  CHECK(with_commas(-1234) == "-1,234");
  CHECK(with_commas(std::numeric_limits<int64_t>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("short numbers keep about three digits", "[terminal]") {
  std::pair<double, const char*> cases[] = {
      {0, "0"},           {812, "812"},       {999.4, "999.4"},  {1000, "1.0k"},     {21300, "21.3k"},
      {999949, "999.9k"}, {999960, "1.0 M"},  {1.1e6, "1.1 M"},  {2.34e9, "2.3 G"},  {0.25, "0.25"},
      {12.345, "12.3"},   {-21300, "-21.3k"}, {5e17, "500.0 P"}, {1e18, "1000.0 P"}, {0.00123, "0.0012"}};
  for (auto& [number, text] : cases) CHECK(short_number(number) == text);
  CHECK(short_number(std::nan("")) == "nan");
}

TEST_CASE("durations are said as people say them", "[terminal]") {
  std::pair<double, const char*> cases[] = {{0.42, "0.4 s"},     {9.96, "10 s"},      {51.2, "51 s"},
                                            {59.6, "1 min 0 s"}, {171, "2 min 51 s"}, {3780, "1 h 03 min"},
                                            {86399, "1 d 0 h"},  {187200, "2 d 4 h"}};
  for (auto& [seconds, text] : cases) CHECK(duration(seconds) == text);
  CHECK(duration(std::numeric_limits<double>::infinity()) == "?");
  CHECK(clock_text(48) == "0:48");
  CHECK(clock_text(727) == "12:07");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(byte_count(812) == "812 B");
  CHECK(byte_count(3.6e6) == "3.6 MB");
  CHECK(byte_count(190e6) == "190 MB");
  CHECK(byte_count(999.6e3) == "1.0 MB");
}

TEST_CASE("fixed digits never show a negative zero", "[terminal]") {
  CHECK(fixed(77.59, 1) == "77.6");
  CHECK(fixed(-0.04, 1) == "0.0");
  CHECK(fixed(-0.06, 1) == "-0.1");
  CHECK(fixed(12.5, 0) == "12");
  CHECK(fixed(std::nan(""), 1) == "nan");
  CHECK(fixed(-INFINITY, 1) == "-inf");
  CHECK(fixed(1e300, 0).size() == 301);
  CHECK(fixed_signed(0.44, 1) == "+0.4");
  CHECK(fixed_signed(-31.2, 1) == "-31.2");
  CHECK(fixed_signed(0.01, 1) == "0.0");
}

TEST_CASE("text is measured, cut and padded by the columns it takes", "[terminal]") {
  CHECK(text_width("Männer") == 6);
  CHECK(text_width("日本") == 4);
  CHECK(text_width("e\xcc\x81") == 1);
  CHECK(text_width("\xff\xfe") == 2);
  CHECK(text_width("\xe6\x97") == 2);  // cut within a character
  CHECK(shortened("Männer und", 10) == "Männer und");
  CHECK(shortened("Männer und", 7) == "Männer…");
  CHECK(shortened("日本語", 4) == "日…");
  CHECK(shortened("abc", 0) == "");
  CHECK(padded("ä", 3) == "ä  ");
  CHECK(padded_left("12", 4) == "  12");
  CHECK(padded("long", 2) == "long");
  CHECK(labelled("train", "812") == "  train      812");
  CHECK(labelled("evaluation1", "x") == "  evaluation1 x");
}
