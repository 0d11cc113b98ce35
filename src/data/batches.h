#pragma once

#include <cstdint>
#include <vector>

#include "modules/base/fields.h"

namespace headlab {

/// How many examples stand side by side.
struct BatchOptions : Described<BatchOptions> {
  int64_t max_tokens = 4096;
  int64_t max_rows = 0;
  int64_t pool = 20000;

  void describe(Fields& fields) override;
};

/// A batch is the indices of its examples.
using Batches = std::vector<std::vector<int64_t>>;

/// The batches of one epoch. Examples are shuffled, cut into pools, each pool is sorted by source length and, within
/// one source length, by target length (up and down in turn, so that neighbours across the seam are alike); the sorted
/// pool is cut into batches as large as the options allow, and all batches are shuffled.
///
/// The size of a batch is rows x the larger of its longest source and its longest target, padding included, so that
/// neither side of a batch ever exceeds `max_tokens`. Lengths are in tokens, as the caller will feed them (bos and eos
/// counted or not); `target_lengths` may be empty for texts without a target side.
///
/// Each index comes exactly once; the result depends on the arguments alone, on every platform. Throws Error where the
/// two lists differ in length, where there is no example, and where an example alone exceeds max_tokens.
Batches epoch_batches(const std::vector<int64_t>& source_lengths, const std::vector<int64_t>& target_lengths,
                      const BatchOptions& options, uint64_t seed, int64_t epoch);

/// Batches for evaluation: all examples sorted by length, the longest first (a memory that is too small shows at once),
/// no randomness. An example that alone exceeds max_tokens is a batch of its own, since no example may be left out.
Batches evaluation_batches(const std::vector<int64_t>& source_lengths, const std::vector<int64_t>& target_lengths,
                           const BatchOptions& options);

/// Results that came batch by batch, one for each example, in the order of the examples.
template <class T>
std::vector<T> original_order(const Batches& batches, std::vector<T> results) {
  std::vector<T> ordered(results.size());
  std::size_t at = 0;
  for (const auto& batch : batches) {
    for (const int64_t i : batch) ordered.at(static_cast<std::size_t>(i)) = std::move(results.at(at++));
  }
  return ordered;
}

/// The share of padding in the tokens of the batches, both sides counted, in [0, 1).
double padding_share(const Batches& batches, const std::vector<int64_t>& source_lengths,
                     const std::vector<int64_t>& target_lengths);

/// Walks through epoch after epoch without end. Where it stands is two numbers; an order made from the same arguments
/// and put at that place gives the same batches from there on.
class BatchOrder {
 public:
  struct Place {
    int64_t epoch = 0;  // from 0
    int64_t batch = 0;  // of the epoch, the one that comes next
    bool operator==(const Place&) const = default;
  };

  BatchOrder(std::vector<int64_t> source_lengths, std::vector<int64_t> target_lengths, BatchOptions options,
             uint64_t seed);
  /// The next batch; the reference lives until the next call.
  const std::vector<int64_t>& next();
  /// Where the next batch lies: after the last batch of an epoch, {epoch + 1, 0}.
  Place place() const { return place_; }
  /// Throws Error for a place that does not exist, as when the data or the options have changed.
  void restore(Place place);
  /// How many batches the epoch of place() has.
  int64_t batches_in_epoch() const { return static_cast<int64_t>(batches_.size()); }

 private:
  void load(int64_t epoch);
  std::vector<int64_t> source_lengths_, target_lengths_;
  BatchOptions options_;
  uint64_t seed_;
  Place place_;
  Batches batches_;
  std::vector<int64_t> current_;
};

}  // namespace headlab
