#include "src/data/batches.h"

#include <algorithm>
#include <cmath>

#include "modules/base/error.h"
#include "modules/base/random.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

struct Lengths {
  std::vector<int64_t> source, target;
};

/// Lengths like those of image captions in subwords: mean 14, deviation 5, target close to source.
Lengths captions(int64_t n) {
  Random random(17);
  Lengths lengths;
  for (int64_t i = 0; i < n; ++i) {
    const double source = std::exp(2.6 + 0.33 * random.normal());
    lengths.source.push_back(std::clamp<int64_t>(std::llround(source), 4, 45));
    lengths.target.push_back(std::clamp<int64_t>(std::llround(source * std::exp(0.03 + 0.2 * random.normal())), 3, 50));
  }
  return lengths;
}

std::vector<int64_t> all_of(const Batches& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int64_t> first_integers(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < n; ++i) result.push_back(i);
  return result;
}

}  // namespace

TEST_CASE("an epoch has each example once, in batches that fit", "[data]") {
  const Lengths lengths = captions(3000);
  BatchOptions options;
  for (const int64_t pool : {0, 1, 700, 5000}) {
    for (const int64_t max_rows : {0, 7}) {
      options.max_tokens = 500;
      options.pool = pool;
      options.max_rows = max_rows;
      const Batches batches = epoch_batches(lengths.source, lengths.target, options, 1, 0);
      CHECK(all_of(batches) == first_integers(3000));
      for (const auto& batch : batches) {
        int64_t longest = 0;
        for (const int64_t i : batch) {
          const auto at = static_cast<std::size_t>(i);
          longest = std::max({longest, lengths.source[at], lengths.target[at]});
        }
        REQUIRE(!batch.empty());
        REQUIRE(static_cast<int64_t>(batch.size()) * longest <= 500);
        REQUIRE((max_rows == 0 || static_cast<int64_t>(batch.size()) <= max_rows));
      }
    }
  }
}

TEST_CASE("at most a tenth of the tokens of captions is padding", "[data]") {
  const Lengths lengths = captions(29000);
  BatchOptions options;
  const Batches batches = epoch_batches(lengths.source, lengths.target, options, 1, 0);
  const double share = padding_share(batches, lengths.source, lengths.target);
  CAPTURE(share, batches.size());
  CHECK(share <= 0.10);
  CHECK(share > 0);
  // Hardly more batches than the tokens need.
  int64_t tokens = 0;
  for (std::size_t i = 0; i < lengths.source.size(); ++i) tokens += std::max(lengths.source[i], lengths.target[i]);
  CHECK(static_cast<double>(batches.size()) <= 1.15 * static_cast<double>(tokens) / 4096 + 2);
}

TEST_CASE("padding_share counts both sides", "[data]") {
  CHECK(padding_share({{0, 1}}, {2, 4}, {3, 3}) == Approx(2.0 / 14));
  CHECK(padding_share({{0}, {1}}, {2, 4}, {3, 3}) == 0);
  CHECK(padding_share({{0, 1}}, {2, 4}, {}) == Approx(0.25));
}

TEST_CASE("the order depends on seed and epoch alone", "[data]") {
  const Lengths lengths = captions(500);
  BatchOptions options;
  options.max_tokens = 300;
  const auto batches = [&](uint64_t seed, int64_t epoch) {
    return epoch_batches(lengths.source, lengths.target, options, seed, epoch);
  };
  CHECK(batches(1, 0) == batches(1, 0));
  CHECK(batches(1, 0) != batches(1, 1));
  CHECK(batches(1, 0) != batches(2, 0));
}

TEST_CASE("the order of a small epoch is the same on every platform", "[data]") {
  BatchOptions options;
  options.max_tokens = 9;
  const Batches batches = epoch_batches({3, 1, 2, 3, 1, 2, 4}, {2, 2, 2, 4, 1, 3, 4}, options, 5, 2);
  CHECK(batches == Batches{{1, 4, 2}, {5, 3}, {0, 6}});
}

TEST_CASE("the batches of an epoch are not sorted by length", "[data]") {
  const Lengths lengths = captions(5000);
  BatchOptions options;
  options.max_tokens = 400;
  const Batches batches = epoch_batches(lengths.source, lengths.target, options, 3, 0);
  std::vector<int64_t> longest;
  for (const auto& batch : batches) longest.push_back(lengths.source[static_cast<std::size_t>(batch[0])]);
  int rises = 0;
  for (std::size_t i = 1; i < longest.size(); ++i) rises += longest[i] > longest[i - 1];
  CHECK(rises > static_cast<int>(longest.size()) / 3);
  CHECK(rises < static_cast<int>(longest.size()) * 2 / 3);
}

TEST_CASE("examples that no batch can hold are named", "[data]") {
  BatchOptions options;
  options.max_tokens = 10;
  CHECK_THROWS_WITH(epoch_batches({3, 11}, {3, 4}, options, 1, 0),
                    "example 1 has 11 tokens, more than a batch may hold (max_tokens 10); raise max_tokens or leave "
                    "out long examples with max_length");
  CHECK_THROWS_WITH(epoch_batches({3, 4}, {3}, options, 1, 0), ContainsSubstring("got 2 sources and 1 targets"));
  CHECK_THROWS_WITH(epoch_batches({}, {}, options, 1, 0), ContainsSubstring("at least one example"));
}

TEST_CASE("evaluation takes the longest first, leaves nothing out, and finds the order again", "[data]") {
  BatchOptions options;
  options.max_tokens = 10;
  const std::vector<int64_t> source = {3, 20, 5, 1, 5};
  const Batches batches = evaluation_batches(source, {}, options);
  CHECK(batches == Batches{{1}, {2, 4}, {0, 3}});
  CHECK(original_order(batches, std::vector<std::string>{"b", "c", "e", "a", "d"}) ==
        std::vector<std::string>{"a", "b", "c", "d", "e"});
}

TEST_CASE("an order put back to any place goes on as before", "[data]") {
  const Lengths lengths = captions(200);
  BatchOptions options;
  options.max_tokens = 300;
  BatchOrder straight(lengths.source, lengths.target, options, 9);
  const int64_t per_epoch = straight.batches_in_epoch();
  std::vector<std::vector<int64_t>> taken;
  std::vector<BatchOrder::Place> places;
  for (int64_t i = 0; i < 3 * per_epoch + 2; ++i) {
    places.push_back(straight.place());
    taken.push_back(straight.next());
  }
  CHECK(places[0] == BatchOrder::Place{0, 0});
  CHECK(std::count(places.begin(), places.end(), BatchOrder::Place{2, 1}) == 1);
  for (std::size_t from = 0; from < places.size(); ++from) {
    BatchOrder resumed(lengths.source, lengths.target, options, 9);
    resumed.restore(places[from]);
    for (std::size_t i = from; i < std::min(from + 5, taken.size()); ++i) REQUIRE(resumed.next() == taken[i]);
  }
  CHECK_THROWS_WITH(straight.restore({0, 10000}),
                    ContainsSubstring("batch 10000 of epoch 0 does not exist: the epoch has"));
  CHECK_THROWS_AS(straight.restore({-1, 0}), Error);
}
