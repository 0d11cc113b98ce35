#include "modules/base/random.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"

using namespace headlab;

TEST_CASE("the generator is SplitMix64 as published", "[base]") {
  Random random(1234567);  // the first values of the reference implementation for this seed
  CHECK(random.next() == 6457827717110365317u);
  CHECK(random.next() == 3203168211198807973u);
  CHECK(random.next() == 9817491932198370423u);
}

TEST_CASE("a generator goes on from its saved state", "[base]") {
  Random random(3);
  random.normal();
  random.below(10);
  Random resumed(random.state());
  for (int i = 0; i < 5; ++i) CHECK(resumed.next() == random.next());
}

TEST_CASE("streams of other keys are other streams", "[base]") {
  std::vector<uint64_t> firsts;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    firsts.push_back(Random::stream(seed, {}).next());
    for (uint64_t key = 0; key < 10; ++key) {
      firsts.push_back(Random::stream(seed, {key}).next());
      for (uint64_t second = 0; second < 10; ++second) firsts.push_back(Random::stream(seed, {key, second}).next());
    }
  }
  std::sort(firsts.begin(), firsts.end());
  CHECK(std::adjacent_find(firsts.begin(), firsts.end()) == firsts.end());
  CHECK(Random::stream(1, {2, 3}).next() == Random::stream(1, {2, 3}).next());
}

TEST_CASE("integers below n are all there and equally frequent", "[base]") {
  Random random(5);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 70000; ++i) ++seen.at(random.below(7));
  for (const int count : seen) CHECK(std::abs(count - 10000) < 500);
}

TEST_CASE("uniform and normal numbers have their moments", "[base]") {
  Random random(6);
  double sum = 0, normal_sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(), z = random.normal();
    REQUIRE((u >= 0 && u < 1));
    sum += u;
    normal_sum += z;
    squares += z * z;
  }
  CHECK(std::abs(sum / n - 0.5) < 0.005);
  CHECK(std::abs(normal_sum / n) < 0.015);
  CHECK(std::abs(squares / n - 1) < 0.02);
}

TEST_CASE("a permutation has each number once, and each place gets each number", "[base]") {
  Random random(7);
  std::vector<std::vector<int>> seen(4, std::vector<int>(4, 0));
  for (int i = 0; i < 4000; ++i) {
    std::vector<int64_t> order = random.permutation(4);
    for (std::size_t place = 0; place < 4; ++place) ++seen[place].at(static_cast<std::size_t>(order[place]));
    std::sort(order.begin(), order.end());
    REQUIRE(order == std::vector<int64_t>{0, 1, 2, 3});
  }
  for (const auto& place : seen) {
    for (const int count : place) CHECK(std::abs(count - 1000) < 150);
  }
  CHECK(random.permutation(0).empty());
  CHECK(random.sample(10, 3).size() == 3);
}
