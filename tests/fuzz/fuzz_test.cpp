// A short run of every fuzz target (tools/fuzz) with inputs of our own: the same ones each time. HEADLAB_FUZZ_RUNS: how
// many.
#include <chrono>
#include <cstdlib>

#include "tests/catch.h"
#include "tools/fuzz/targets.h"

using namespace headlab;

TEST_CASE("no input makes a reader crash, throw what it shouldn't, or break a promise", "[fuzz]") {
  const char* wanted = std::getenv("HEADLAB_FUZZ_RUNS");
  const auto runs = wanted ? std::strtoull(wanted, nullptr, 10) : 4000;
  for (const auto& target : fuzz::targets()) {
    INFO(target.name);
    Random random(20);
    const auto seeds = target.seeds();
    for (const auto& seed : seeds) CHECK(target.one(reinterpret_cast<const uint8_t*>(seed.data()), seed.size()) == 0);
    std::size_t changed = 0;
    for (unsigned long long run = 0; run < runs; ++run) {
      const auto& seed = seeds[static_cast<std::size_t>(random.below(seeds.size()))];
      auto input = seed;
      for (auto edits = 1 + random.below(4); edits > 0; --edits) input = target.mutate(input, random);
      changed += input != seed;
      target.one(reinterpret_cast<const uint8_t*>(input.data()),
                 input.size());  // ends the program where it must not pass
    }
    CHECK(changed > runs / 2);
  }
}

TEST_CASE("an input of any one byte, and of none, is taken by every reader", "[fuzz]") {
  for (const auto& target : fuzz::targets()) {
    INFO(target.name);
    CHECK(target.one(nullptr, 0) == 0);
    for (int byte = 0; byte < 256; ++byte) {
      const auto one = static_cast<uint8_t>(byte);
      CHECK(target.one(&one, 1) == 0);
    }
  }
}
