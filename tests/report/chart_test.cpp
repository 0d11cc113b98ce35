#include "src/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/report/figures.h"
#include "src/report/head_map.h"
#include "src/report/html.h"
#include "tests/catch.h"
#include "tests/report/page_checks.h"

using namespace headlab;

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

TEST_CASE("a chart's data are its lines and bands; what is not finite breaks a line, and names can't leave the data",
          "[report]") {
  Chart chart{"t", "step", {}, {}, "what the band is"};
  chart.lines.push_back({"a</script><b>", {{0, 1}, {1, std::nan("")}, {2, 3}}, 2, 7, false, true});
  chart.lines.push_back({"many", {{0, 1}}, 1, 0, true});
  chart.bands.push_back({"", {{0, 0, 2}, {1, std::nan(""), 2}}, 2, "a"});
  const auto page = chart.html();
  CHECK(test::count(page, "</script>") == 1);
  const auto from = page.find("<script type=\"application/json\">");
  REQUIRE(from != std::string::npos);
  const auto begin = page.find('>', from) + 1;
  const auto data = nlohmann::json::parse(page.substr(begin, page.find("</script>") - begin));
  CHECK(data["x"] == "step");
  REQUIRE(data["lines"].size() == 2);
  CHECK(data["lines"][0]["name"] == "a</script><b>");
  CHECK(data["lines"][0]["points"] == nlohmann::json::parse("[[0.0, 1.0], [1.0, null], [2.0, 3.0]]"));
  CHECK(data["lines"][0]["pattern"] == Chart::patterns - 1);  // of the dashes that there are
  CHECK(data["lines"][0]["marks"] == true);
  CHECK(data["lines"][1]["faint"] == true);
  CHECK(data["bands"][0]["ranges"] == nlohmann::json::parse("[[0.0, 0.0, 2.0]]"));
  CHECK(data["bands"][0]["of"] == "a");
  // What is drawn is said in words too, for who does not see it; one of many alike is not.
  CHECK_THAT(data["summary"].get<std::string>(), ContainsSubstring("1 at 0, 3 at 2") && !ContainsSubstring("many"));
  CHECK_THAT(page, ContainsSubstring("<p class=\"note\">what the band is</p>"));
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
