#include "src/train/augment.h"

#include <algorithm>
#include <numeric>

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/decode/pad.h"

namespace headlab {
namespace {

struct RateOptions : Described<RateOptions> {
  double rate = 0.1;
  void describe(Fields& fields) override { fields.add("rate", rate, "how probable it is").at_least(0).at_most(1); }
};

/// Each word becomes unk with probability `rate`, by itself.          (1703.02573; of decoders: 1511.06349)
struct WordDropout : Augmentation {
  explicit WordDropout(const RateOptions& options) : rate(options.rate) {}
  void change(AugmentedText& text, Random& random) const override {
    for (auto& word : text.words) {
      const bool special = word == text.ids.pad || word == text.ids.bos || word == text.ids.eos;
      if (random.uniform() < rate && !special) word = text.ids.unk;
    }
  }
  double rate;
};

struct TokenSwapOptions : Described<TokenSwapOptions> {
  double rate = 0.1;
  int64_t distance = 3;
  void describe(Fields& fields) override {
    fields.add("rate", rate, "share of the words that are moved").at_least(0).at_most(1);
    fields.add("distance", distance, "no word ends further from its place than this").at_least(1).unit("tokens");
  }
};

/// Word i gets the key i, and with probability `rate` i + u, u uniform in [0, distance + 1); the words are put in the
/// order of their keys. No word moves further than `distance`.          (1711.00043, section 2.3, where rate is 1)
struct TokenSwap : Augmentation {
  explicit TokenSwap(const TokenSwapOptions& options) : options(options) {}
  bool needs_source() const override { return true; }
  void change(AugmentedText& text, Random& random) const override {
    std::vector<double> keys;
    for (std::size_t i = 0; i < text.words.size(); ++i) {
      const bool moved = random.uniform() < options.rate;
      const auto push = random.uniform() * static_cast<double>(options.distance + 1);
      keys.push_back(static_cast<double>(i) + (moved ? push : 0));
    }
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
    const auto words = text.words;
    for (std::size_t i = 0; i < order.size(); ++i) text.words[i] = words[order[i]];
  }
  TokenSwapOptions options;
};

/// The whole source becomes a copy of the target with probability `rate`.          (Currey et al. 2017, W17-4715)
struct BackCopy : Augmentation {
  explicit BackCopy(const RateOptions& options) : rate(options.rate) {}
  bool needs_source() const override { return true; }
  bool needs_one_vocabulary() const override { return true; }
  void change(AugmentedText& text, Random& random) const override {
    if (random.uniform() < rate) text.words = text.target;
  }
  double rate;
};

using Texts = std::vector<std::vector<int64_t>>;

/// The ids of each row, padding left out.
Texts rows_of(const Tensor& ids_BT, const Tensor& mask_BT) {
  const auto ids = ids_BT.to(torch::kCPU, torch::kLong).contiguous();
  const auto mask = mask_BT.defined() ? mask_BT.to(torch::kCPU).contiguous() : Tensor();
  const auto* id = ids.const_data_ptr<int64_t>();
  const auto* real = mask.defined() ? mask.const_data_ptr<bool>() : nullptr;
  Texts rows(static_cast<std::size_t>(ids.size(0)));
  std::size_t at = 0;
  for (auto& row : rows)
    for (int64_t t = 0; t < ids.size(1); ++t, ++at)
      if (!real || real[at]) row.push_back(id[at]);
  return rows;
}

uint64_t key_of(const std::string& name) {
  uint64_t key = 0;
  for (const unsigned char c : name) key = key * 131 + c;
  return key;
}

}  // namespace

const Augmentations& augmentations() {
  static const Augmentations registry =
      Augmentations("augmentation", "changes what a model reads in training")
          .entry<WordDropout, RateOptions>("word_dropout", "each word becomes unk with a rate", "1703.02573")
          .entry<TokenSwap, TokenSwapOptions>("token_swap", "source words are moved by a few places", "1711.00043")
          .entry<BackCopy, RateOptions>("back_copy", "the source becomes a copy of the target with a rate");
  return registry;
}
const Catalogue& augmentation_catalogue() { return augmentations().catalogue(); }

Augment::Augment(const Choices& choices, const TextKind& kind, bool has_source, uint64_t seed)
    : kind_(kind), seed_(seed) {
  std::map<std::string, uint64_t> before;  // how many of the name: two of one kind must not draw alike
  for (std::size_t i = 0; i < choices.items.size(); ++i) {
    const auto& choice = choices.items[i];
    const auto where = "augment[" + std::to_string(i) + "]: " + choice.type();
    const auto made = augmentations().make(choice);
    if (made->needs_source() && !has_source)
      throw UsageError(where +
                       " changes a source, but the task has one text, whose tokens are what is learnt; leave it out");
    if (made->needs_one_vocabulary() && !kind.one_vocabulary)
      throw UsageError(
          where +
          " writes target words into the source: expected one vocabulary for both (a joint tokenizer), got two");
    entries_.push_back({made, Random::stream(key_of(choice.type()), {before[choice.type()]++}).next()});
  }
}

std::vector<int64_t> Augment::words_of(const std::vector<int64_t>& text, std::size_t& first) const {
  first = 0;
  std::size_t last = text.size();
  while (first < last && text[first] == kind_.ids.bos) ++first;
  while (last > first && text[last - 1] == kind_.ids.eos) --last;
  return {text.begin() + static_cast<std::ptrdiff_t>(first), text.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::vector<int64_t> Augment::changed(const std::vector<int64_t>& text, const std::vector<int64_t>& target,
                                      int64_t step, int64_t example) const {
  std::size_t first = 0, ignored = 0;
  const auto target_words = words_of(target, ignored);
  AugmentedText augmented{words_of(text, first), target_words, kind_.ids};
  const auto count = augmented.words.size();
  for (const auto& entry : entries_) {
    auto random = Random::stream(seed_, {entry.stream, static_cast<uint64_t>(step), static_cast<uint64_t>(example)});
    entry.augmentation->change(augmented, random);
  }
  std::vector<int64_t> whole(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first));
  whole.insert(whole.end(), augmented.words.begin(), augmented.words.end());
  whole.insert(whole.end(), text.begin() + static_cast<std::ptrdiff_t>(first + count), text.end());
  return whole;
}

TokenBatch Augment::operator()(TokenBatch batch, int64_t step) const {
  const bool pairs = batch.inputs.source_BS.defined();
  auto& ids = pairs ? batch.inputs.source_BS : batch.inputs.target_BT;
  auto& mask = pairs ? batch.inputs.source_mask_BS : batch.inputs.target_mask_BT;
  const auto texts = rows_of(ids, mask);
  const auto targets = pairs ? rows_of(batch.inputs.target_BT, batch.inputs.target_mask_BT) : Texts(texts.size());
  auto rows = texts;
  for (std::size_t b = 0; b < rows.size(); ++b) rows[b] = changed(texts[b], targets[b], step, batch.examples.at(b));
  if (rows != texts) std::tie(ids, mask) = pad_right(rows, kind_.ids.pad, ids.device());
  return batch;
}

}  // namespace headlab
