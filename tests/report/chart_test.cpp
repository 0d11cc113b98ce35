#include "src/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "src/report/figures.h"
#include "src/report/head_map.h"
#include "src/report/html.h"
#include "tests/catch.h"

using namespace headlab;

TEST_CASE("axes have a few round numbers around the data", "[report]") {
  std::pair<double, double> ranges[] = {{0, 1},       {1.2, 7.9}, {-31.2, 0.4}, {0, 1600},
                                        {5e-7, 1e-3}, {3, 3},     {0, 0},       {-2e9, 1e9}};
  for (auto& [low, high] : ranges) {
    CAPTURE(low, high);
    auto ticks = round_ticks(low, high, 6);
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 6);
    CHECK(ticks.front() <= low);
    CHECK(ticks.back() >= high - 1e-9 * std::abs(high));
    auto step = ticks[1] - ticks[0];
    auto digit = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    CHECK((digit == Approx(1) || digit == Approx(2) || digit == Approx(5)));
  }
  CHECK(round_ticks(0, 1600, 7) == std::vector<double>{0, 500, 1000, 1500, 2000});
}

TEST_CASE("a long line is thinned without losing its spikes", "[report]") {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 10000; ++i) points.emplace_back(i, i == 7777 ? 1000.0 : i == 3333 ? -1000.0 : i % 7);
  auto thin = thinned(points, 600);
  CHECK(thin.size() <= 600);
  CHECK(std::count(thin.begin(), thin.end(), std::pair(7777.0, 1000.0)) == 1);
  CHECK(std::count(thin.begin(), thin.end(), std::pair(3333.0, -1000.0)) == 1);
  CHECK(std::is_sorted(thin.begin(), thin.end()));
  CHECK(thinned({{1, 2}, {3, 4}}, 600).size() == 2);
}

TEST_CASE("a chart without anything to draw is left out", "[report]") {
  CHECK(Chart{"t", "step", {}, {}}.html().empty());
  CHECK(Chart{"t", "step", {{"a", {{1, std::nan("")}}, 0, false, false, false}}, {}}.html().empty());
  CHECK_FALSE(Chart{"t", "step", {{"a", {{1, 2}}, 0, false, false, true}}, {}}.html().empty());
}

TEST_CASE("lines of a chart differ by their dashes and marks, not by colour alone", "[report]") {
  Chart chart{"t", "step", {}, {}};
  for (int i = 0; i < 5; ++i) chart.lines.push_back({"line " + std::to_string(i), {{0, i}, {1, i + 1}}, i, i, false, true});
  const auto page = chart.html();
  for (auto* pattern : {"line c0\"", "line c1 dashed\"", "line c2 dotted\"", "line c3 dashdot\"", "line c4 long\""}) {
    CAPTURE(pattern);
    CHECK_THAT(page, ContainsSubstring(pattern));
  }
  // The outlines of the marks in the legend, drawn around the same place.
  std::set<std::string> shapes;
  const std::string before = "class=\"mark ";
  for (auto at = page.find(before); at != std::string::npos; at = page.find(before, at + 1)) {
    const auto from = page.find("d=\"", at);
    shapes.insert(page.substr(from, page.find('"', from + 3) - from));
  }
  CHECK(shapes.size() == 5);
  CHECK_THAT(page, ContainsSubstring("<title>line 3: 4 at step 1</title>"));
}

TEST_CASE("the band of a lone point is a line up and down, and a band without a name is not in the legend", "[report]") {
  Chart chart{"t", "x", {{"a", {{1, 2}}, 2, 0, false, true}}, {{"", {{1, 1, 3}}, 2}}, "what the band is"};
  CHECK_THAT(chart.html(), ContainsSubstring("<path class=\"line c2\" d=\"M") && ContainsSubstring("<p class=\"note\">what the band is</p>"));
  CHECK_THAT(chart.html(), !ContainsSubstring("<polygon") && !ContainsSubstring("class=\"area"));
  chart.bands[0].ranges.push_back({2, 1, 3});
  chart.bands[0].name = "range";
  CHECK_THAT(chart.html(), ContainsSubstring("<polygon class=\"band c2\"") && ContainsSubstring("<i class=\"area c2\"></i>range"));
}

TEST_CASE("the sequential scale darkens evenly, the diverging one is lightest in its middle", "[report]") {
  auto grey = [](const std::string& hex) {
    auto part = [&](std::size_t at) {
      return static_cast<double>(std::strtol(hex.substr(at, 2).c_str(), nullptr, 16));
    };
    return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5);
  };
  for (int i = 0; i < 20; ++i) {
    CHECK(grey(sequential_colour(i / 20.0)) > grey(sequential_colour((i + 1) / 20.0)));
    bool first_half = i < 10;
    CHECK((grey(diverging_colour(i / 20.0)) < grey(diverging_colour((i + 1) / 20.0))) == first_half);
  }
  CHECK(diverging_colour(-3) == diverging_colour(0));
  CHECK(sequential_colour(7) == sequential_colour(1));
}

TEST_CASE("a map of tiny values states their power of ten", "[report]") {
  StackSizes sizes;
  sizes.add({"enc.self", 0, 1});
  HeadMap map{"t", "u", {{"enc.self.0.0", 1.5e-6}, {"enc.self.0.1", 3e-6}}, false, false, "", {}, {}, "", ""};
  CHECK_THAT(map.html(sizes), ContainsSubstring(">1.50</a>") && ContainsSubstring("cells times 10<sup>-6</sup>"));
  map.values = {{"enc.self.0.0", std::nan("")}};
  CHECK(map.html(sizes).empty());
}

TEST_CASE("figures have the digits that their metric deserves", "[report]") {
  CHECK(figure("bleu", 77.59) == "77.6");
  CHECK(figure("loss", 1.2) == "1.200");
  CHECK(figure("spearman", 0.123456) == "0.1235");
  CHECK(figure_signed("bleu", 0.44) == "+0.4");
  CHECK(significant(2.5e-5, 4) == "2.5e-5");
  CHECK(significant(1600, 4) == "1,600");
  CHECK(significant(1.5e12, 4) == "1.5e12");
  CHECK(less_is_better("perplexity"));
  CHECK(less_is_better("valid_loss"));
  CHECK_FALSE(less_is_better("bleu"));
}

TEST_CASE("escaped text holds no markup, no control characters and only UTF-8", "[report]") {
  CHECK(html::escape("<a href=\"x\" b='y'>&amp;") == "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  CHECK(html::escape("ä日😀\n\t") == "ä日😀\n\t");
  const std::string bad = "\xef\xbf\xbd";
  CHECK(html::escape(std::string("a\0b\x7f", 4)) == "a" + bad + "b" + bad);
  CHECK(html::escape("\xff\xc3(") == bad + bad + "(");
  CHECK(html::escape("\xed\xa0\x80") == bad + bad + bad);  // a surrogate
  CHECK(html::escape("\xc0\xbc") == bad + bad);            // an overlong "<"
  CHECK(html::escape("\xe6\x97<") == bad + bad + "&lt;");
}
