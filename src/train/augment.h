#pragma once

#include "modules/base/random.h"
#include "src/task/task.h"

namespace headlab {

/// The words of an example, without the bos before and the eos after them.
struct AugmentedText {
  std::vector<int64_t> words;          // of what the model reads: the source, or the one text
  const std::vector<int64_t>& target;  // of the target; empty where there is one text
  TextIds ids;                         // special ones: unk, and those that stay (a separator between two texts)
};

/// Changes what the model reads, never what it shall answer.
struct Augmentation {
  virtual ~Augmentation() = default;
  virtual void change(AugmentedText& text, Random& random) const = 0;
  /// It moves or replaces whole texts: where the model reads the text whose tokens it predicts, that would tell or
  /// spoil the answers.
  virtual bool needs_source() const { return false; }
  /// It writes target words into the source.
  virtual bool needs_one_vocabulary() const { return false; }
};

using Augmentations = Registry<Augmentation>;
const Augmentations& augmentations();
const Catalogue& augmentation_catalogue();

/// A training's augmentations, in the order of the spec: each sees what the one before it left.
///
/// Each draws from a generator of its own, made from the seed, its name, the step and the example, so that a resumed
/// training sees the same texts, and one with rate 0 the clean ones. The data itself is never changed, and validation
/// reads it clean.
class Augment {
 public:
  /// Throws UsageError for an augmentation that the task's texts do not allow. `has_source`: examples are pairs.
  Augment(const Choices& choices, const TextKind& kind, bool has_source, uint64_t seed);
  bool empty() const { return entries_.empty(); }
  /// The batch with other ids in its source (or in its one text); everything else, and the batch's own tensors, stay.
  TokenBatch operator()(TokenBatch batch, int64_t step) const;

 private:
  struct Entry {
    std::shared_ptr<Augmentation> augmentation;
    uint64_t stream;
  };
  std::vector<int64_t> changed(const std::vector<int64_t>& text, const std::vector<int64_t>& target, int64_t step,
                               int64_t example) const;
  std::vector<int64_t> words_of(const std::vector<int64_t>& text, std::size_t& first) const;
  std::vector<Entry> entries_;
  TextKind kind_;
  uint64_t seed_;
};

}  // namespace headlab
