#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

/// The words of a text as a model reads it, and their dependency tree.
struct AnnotatedText {
  std::vector<int64_t> first;         // of each word: where its first token stands among the ids that the model reads
  std::vector<int64_t> word_at;       // of each id: its word; -1: a special id
  std::vector<int64_t> parent;        // of each word: its head, a word; -1: the root
  std::vector<std::string> relation;  // of each word: to its head (Universal Dependencies)
};

/// A task that knows the trees of the texts it gives a model to read: of the source, where there are two texts.
struct KnowsTrees {
  virtual ~KnowsTrees() = default;
  /// Of the first examples of a split (limit 0: all), in their order; empty where this data has no trees.
  virtual std::vector<AnnotatedText> trees(const std::string& split, int64_t limit) const = 0;
};

}  // namespace headlab
