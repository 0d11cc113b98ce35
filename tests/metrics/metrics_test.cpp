#include <cmath>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "src/metrics/bleu.h"
#include "src/metrics/bootstrap.h"
#include "src/metrics/chrf.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

using Lines = std::vector<std::string>;

/// Sentences and noisy copies of them.
struct Texts {
  Lines references, good, bad;
};

Texts texts() {
  Random random(23);
  Texts result;
  for (int i = 0; i < 60; ++i) {
    std::string reference, good, bad;
    for (uint64_t n = 6 + random.below(10); n > 0; --n) {
      const std::string word(1 + random.below(4), static_cast<char>('a' + random.below(20)));
      reference += word + " ";
      good += (random.below(10) == 0 ? "zz" : word) + " ";
      bad += (random.below(4) == 0 ? "zz" : word) + " ";
    }
    result.references.push_back(reference);
    result.good.push_back(good);
    result.bad.push_back(bad);
  }
  return result;
}

}  // namespace

TEST_CASE("references-transposed: layouts that do not fit are errors with both counts", "[metrics][cases]") {
  CHECK_THROWS_WITH(Bleu().corpus({"a", "b"}, {{"a", "b", "c"}}),
                    "bleu: expected as many references as hypotheses, got 2 hypotheses and 3 references");
  CHECK_THROWS_WITH(Chrf().corpus({"a", "b"}, {{"a", "b"}, {"a"}}),
                    "chrf: expected as many references as hypotheses, got 2 hypotheses and 1 references in set 1");
  CHECK_THROWS_WITH(Bleu().corpus({}, {{}}), "bleu: expected at least one hypothesis, got none");
  CHECK_THROWS_WITH(Chrf().corpus({"a"}, {}), "chrf: expected at least one set of references, got none");
  CHECK_THROWS_WITH(Bleu().sentence("a", {}), "bleu: expected at least one set of references, got none");
}

TEST_CASE("the score of a corpus is that of the sum of its sentences' counts", "[metrics]") {
  const Texts t = texts();
  const Bleu bleu;
  const Chrf chrf;
  CHECK(bleu.score(sum_of(bleu.counts(t.good, {t.references}))).score == bleu.corpus(t.good, {t.references}).score);
  CHECK(chrf.score(sum_of(chrf.counts(t.good, {t.references}))).score == chrf.corpus(t.good, {t.references}).score);
  CHECK(bleu.counts(t.good[3], {t.references[3]}) == bleu.counts(t.good, {t.references})[3]);
}

TEST_CASE("text that is not UTF-8 is scored all the same", "[metrics]") {
  CHECK(Bleu().corpus({"a\xFF b c d"}, {{"a\xFE b c d"}}).score == Approx(100));
  CHECK(Chrf().sentence("\xFF", {"\uFFFD"}).score == Approx(100));
}

TEST_CASE("BLEU options that contradict each other are told", "[metrics]") {
  BleuOptions options;
  options.smoothing_value = 0.5;
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "smoothing_value");
}

TEST_CASE("a bootstrap interval surrounds the score and comes back with its seed", "[metrics]") {
  const Texts t = texts();
  const Bleu bleu;
  const auto score = [&](const Counts& counts) { return bleu.score(counts).score; };
  const std::vector<Counts> counts = bleu.counts(t.bad, {t.references});
  const double whole = score(sum_of(counts));
  const Interval interval = bootstrap(counts, score, 400, 1), again = bootstrap(counts, score, 400, 1),
                 other = bootstrap(counts, score, 400, 2);
  CHECK(interval.low < whole);
  CHECK(whole < interval.high);
  CHECK(std::abs(interval.mean - whole) < 0.25 * (interval.high - interval.low));
  CHECK((again.mean == interval.mean && again.low == interval.low && again.high == interval.high));
  CHECK(other.mean != interval.mean);
  CHECK_THROWS_AS(bootstrap({}, score, 10, 1), Error);
  CHECK_THROWS_AS(bootstrap(counts, score, 0, 1), Error);
}

TEST_CASE("a bootstrap interval has the width that theory gives a mean", "[metrics]") {
  Random random(31);
  std::vector<Counts> sentences;
  for (int i = 0; i < 400; ++i) sentences.push_back({random.below(2) == 0 ? 0 : 1, 1});
  const auto share = [](const Counts& c) { return static_cast<double>(c[0]) / static_cast<double>(c[1]); };
  const double p = share(sum_of(sentences)), expected = 2 * 1.96 * std::sqrt(p * (1 - p) / 400);
  const Interval interval = bootstrap(sentences, share, 2000, 1);
  CHECK(interval.high - interval.low == Approx(expected).epsilon(0.1));
}

TEST_CASE("paired resamples tell a better system from an equal one", "[metrics]") {
  const Texts t = texts();
  const Chrf chrf;
  const auto score = [&](const Counts& counts) { return chrf.score(counts).score; };
  const auto good = chrf.counts(t.good, {t.references}), bad = chrf.counts(t.bad, {t.references});
  const PairedResult better = paired_bootstrap(bad, good, score, 300, 1);
  CHECK(better.difference == Approx(score(sum_of(good)) - score(sum_of(bad))));
  CHECK(better.interval.low > 0);
  CHECK(better.p_value < 0.01);
  const PairedResult same = paired_bootstrap(good, good, score, 300, 1);
  CHECK(same.difference == 0);
  CHECK(same.p_value == 1);
  CHECK_THROWS_WITH(paired_bootstrap({{1}}, {{1}, {2}}, score, 10, 1),
                    "paired bootstrap: expected the same sentences of both, got 1 of the baseline and 2 of the system");
}
