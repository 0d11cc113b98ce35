#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace headlab {

/// A number for a text, the same on every platform (FNV-1a, 64 bits): names become seeds and ids by it.
inline uint64_t text_hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// The random numbers of everything that is not a tensor: data order, sampling, resampling. The standard library's
/// distributions differ from one implementation to the next; these give the same integers, permutations and uniform
/// numbers on every platform (normal numbers may differ in the last bit, with the mathematics library).
///
/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): period 2^64, and the
/// whole state is one word, so that saving and resuming it is exact. Not for cryptography.
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  /// An independent stream for each tuple of keys: Random::stream(seed, {epoch, layer}) needs no generator to be
  /// carried along, and adding one stream leaves the others as they were.
  static Random stream(uint64_t seed, std::initializer_list<uint64_t> keys) {
    uint64_t state = scramble(seed + increment);
    // The factor keeps seed and key apart: without it, stream(1, {2}) would be stream(2, {1}).
    for (const uint64_t key : keys) state = scramble(5 * state + increment + scramble(key + increment));
    return Random(state);
  }

  /// 64 random bits.
  uint64_t next() { return scramble(state_ += increment); }

  /// A uniform integer in [0, n), without bias; n must be positive.
  uint64_t below(uint64_t n) {
    const uint64_t rejected = (0 - n) % n;  // 2^64 mod n
    uint64_t bits = next();
    while (bits < rejected) bits = next();
    return bits % n;
  }

  /// A uniform number in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// A normal number with mean 0 and variance 1 (Box and Muller 1958; one of the pair is dropped, so that the state
  /// stays one word).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * 3.14159265358979323846 * uniform());
  }

  /// Puts the items in a uniformly drawn order (Fisher and Yates).
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  /// 0 .. n-1 in a uniformly drawn order.
  std::vector<int64_t> permutation(int64_t n) {
    std::vector<int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    shuffle(order);
    return order;
  }

  /// k different numbers of 0 .. n-1 in the order drawn; 0 <= k <= n.
  std::vector<int64_t> sample(int64_t n, int64_t k) {
    std::vector<int64_t> order = permutation(n);
    order.resize(static_cast<std::size_t>(k));
    return order;
  }

  /// All there is to save; Random(state) goes on where this one stands.
  uint64_t state() const { return state_; }

 private:
  static constexpr uint64_t increment = 0x9E3779B97F4A7C15;
  static uint64_t scramble(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace headlab
