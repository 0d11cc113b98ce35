#include "src/data/batches.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "modules/base/error.h"
#include "modules/base/random.h"

namespace headlab {
namespace {

struct Lengths {
  const std::vector<int64_t>& sources;
  const std::vector<int64_t>& targets;  // empty: no target side
  int64_t source(int64_t i) const { return sources[static_cast<std::size_t>(i)]; }
  int64_t target(int64_t i) const { return targets.empty() ? 0 : targets[static_cast<std::size_t>(i)]; }
  int64_t larger(int64_t i) const { return std::max(source(i), target(i)); }
  int64_t count() const { return static_cast<int64_t>(sources.size()); }
};

Lengths checked(const std::vector<int64_t>& sources, const std::vector<int64_t>& targets) {
  if (!targets.empty() && targets.size() != sources.size()) {
    throw Error("batches: expected as many targets as sources, got " + std::to_string(sources.size()) +
                " sources and " + std::to_string(targets.size()) + " targets");
  }
  if (sources.empty()) throw Error("batches: expected at least one example, got none");
  return {sources, targets};
}

/// Cuts sorted examples into batches and appends them; a batch always has at least one example.
void cut(const std::vector<int64_t>& sorted, const Lengths& lengths, const BatchOptions& options, Batches& batches) {
  std::vector<int64_t> batch;
  int64_t longest = 0;
  for (const int64_t i : sorted) {
    const int64_t rows = static_cast<int64_t>(batch.size()) + 1;
    const int64_t with_it = std::max(longest, lengths.larger(i));
    const bool fits = rows * with_it <= options.max_tokens && (options.max_rows == 0 || rows <= options.max_rows);
    if (!fits && !batch.empty()) {
      batches.push_back(std::move(batch));
      batch.clear();
      longest = 0;
    }
    batch.push_back(i);
    longest = std::max(longest, lengths.larger(i));
  }
  if (!batch.empty()) batches.push_back(std::move(batch));
}

/// By source length, then by target length: up where the source length is even, down where it is odd. Ties keep the
/// order they came in.
void sort_by_length(std::vector<int64_t>& order, const Lengths& lengths) {
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t source = lengths.source(a);
    if (source != lengths.source(b)) return source < lengths.source(b);
    return source % 2 == 0 ? lengths.target(a) < lengths.target(b) : lengths.target(a) > lengths.target(b);
  });
}

}  // namespace

void BatchOptions::describe(Fields& fields) {
  fields.add("max_tokens", max_tokens, "rows x the longest source or target of a batch at most, padding included")
      .at_least(1)
      .unit("tokens");
  fields.add("max_rows", max_rows, "examples of a batch at most").at_least(0).unit("examples").means("0: no limit");
  fields.add("pool", pool, "examples that are sorted by length together; fewer mix more and pad more")
      .at_least(0)
      .unit("examples")
      .means("0: the whole epoch");
}

Batches epoch_batches(const std::vector<int64_t>& source_lengths, const std::vector<int64_t>& target_lengths,
                      const BatchOptions& options, uint64_t seed, int64_t epoch) {
  const Lengths lengths = checked(source_lengths, target_lengths);
  for (int64_t i = 0; i < lengths.count(); ++i) {
    if (lengths.larger(i) > options.max_tokens) {
      throw Error("example " + std::to_string(i) + " has " + std::to_string(lengths.larger(i)) +
                  " tokens, more than a batch may hold (max_tokens " + std::to_string(options.max_tokens) +
                  "); raise max_tokens or leave out long examples with max_length");
    }
  }
  Random random = Random::stream(seed, {static_cast<uint64_t>(epoch)});
  const std::vector<int64_t> order = random.permutation(lengths.count());
  const int64_t pool = options.pool == 0 ? lengths.count() : options.pool;
  Batches batches;
  for (int64_t first = 0; first < lengths.count(); first += pool) {
    std::vector<int64_t> members(order.begin() + first, order.begin() + std::min(first + pool, lengths.count()));
    sort_by_length(members, lengths);
    cut(members, lengths, options, batches);
  }
  random.shuffle(batches);
  return batches;
}

Batches evaluation_batches(const std::vector<int64_t>& source_lengths, const std::vector<int64_t>& target_lengths,
                           const BatchOptions& options) {
  const Lengths lengths = checked(source_lengths, target_lengths);
  std::vector<int64_t> order(source_lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::tuple(lengths.source(a), lengths.target(a)) > std::tuple(lengths.source(b), lengths.target(b));
  });
  Batches batches;
  cut(order, lengths, options, batches);
  return batches;
}

double padding_share(const Batches& batches, const std::vector<int64_t>& source_lengths,
                     const std::vector<int64_t>& target_lengths) {
  const Lengths lengths{source_lengths, target_lengths};
  int64_t tokens = 0, places = 0;
  for (const auto& batch : batches) {
    int64_t source = 0, target = 0;
    for (const int64_t i : batch) {
      source = std::max(source, lengths.source(i));
      target = std::max(target, lengths.target(i));
      tokens += lengths.source(i) + lengths.target(i);
    }
    places += static_cast<int64_t>(batch.size()) * (source + target);
  }
  return places == 0 ? 0 : 1 - static_cast<double>(tokens) / static_cast<double>(places);
}

BatchOrder::BatchOrder(std::vector<int64_t> source_lengths, std::vector<int64_t> target_lengths, BatchOptions options,
                       uint64_t seed)
    : source_lengths_(std::move(source_lengths)),
      target_lengths_(std::move(target_lengths)),
      options_(std::move(options)),
      seed_(seed) {
  load(0);
}

void BatchOrder::load(int64_t epoch) {
  batches_ = epoch_batches(source_lengths_, target_lengths_, options_, seed_, epoch);
  place_ = {epoch, 0};
}

const std::vector<int64_t>& BatchOrder::next() {
  current_ = std::move(batches_[static_cast<std::size_t>(place_.batch)]);
  if (++place_.batch == batches_in_epoch()) load(place_.epoch + 1);
  return current_;
}

void BatchOrder::restore(Place place) {
  const std::string where = "batch " + std::to_string(place.batch) + " of epoch " + std::to_string(place.epoch);
  if (place.epoch < 0 || place.batch < 0) throw Error(where + " does not exist");
  load(place.epoch);
  if (place.batch >= batches_in_epoch()) {
    throw Error(where + " does not exist: the epoch has " + std::to_string(batches_in_epoch()) +
                " batches; the data or the batch options are not those of the saved state");
  }
  place_ = place;
}

}  // namespace headlab
