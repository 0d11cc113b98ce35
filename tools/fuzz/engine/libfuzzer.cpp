// One target (HEADLAB_FUZZ_TARGET) for libFuzzer: half of its edits are its own, half know the input's grammar.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/fuzz/targets.h"

extern "C" std::size_t LLVMFuzzerMutate(uint8_t* data, std::size_t size, std::size_t largest);

namespace {
const headlab::fuzz::Target& chosen() {
  static const auto& target = headlab::fuzz::target(HEADLAB_FUZZ_TARGET);
  return target;
}
}  // namespace

/// Before the corpus is read: the target's seeds go into the folder that HEADLAB_FUZZ_SEEDS names.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("HEADLAB_FUZZ_SEEDS");
  if (!folder) return 0;
  std::size_t number = 0;
  for (const auto& seed : chosen().seeds()) {
    std::ofstream(std::string(folder) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) { return chosen().one(data, size); }

extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data, std::size_t size, std::size_t largest, unsigned seed) {
  headlab::Random random(seed);
  if (random.below(2) == 0) return LLVMFuzzerMutate(data, size, largest);
  auto text = chosen().mutate(std::string(reinterpret_cast<const char*>(data), size), random);
  text.resize(std::min(text.size(), largest));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
