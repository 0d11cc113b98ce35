#pragma once

#include <string>
#include <vector>

#include "modules/base/fields.h"
#include "src/data/grammar/gold.h"

namespace headlab::grammar {

/// A small English-German grammar, written by hand, that writes parallel text with gold annotation. The same options
/// give the same bytes on every platform.
struct GrammarOptions : Described<GrammarOptions> {
  int64_t train = 12000;  // pairs
  int64_t valid = 500;    // pairs
  int64_t test = 500;     // pairs
  int64_t seed = 1;
  int64_t held_out = 10;    // percent of the word combinations that are kept out of train and valid
  int64_t max_tokens = 20;  // of the English side, punctuation included
  void describe(Fields& fields) override;
};

struct Split {
  std::string name;  // "train", "valid", "test"
  std::vector<Example> examples;
};

struct Corpus {
  GrammarOptions options;
  std::vector<Split> splits;                          // train, valid, test
  std::vector<std::string> held_out;                  // every combination kept out of train and valid, sorted
  const Split& split(const std::string& name) const;  // throws UsageError for an unknown name
};

/// Generates the corpus. Train and valid have no held-out combination; each test pair has at least one. No source or
/// target sentence occurs twice in the corpus. Valid and test do not depend on the number of training pairs, and a
/// smaller train split is the beginning of a larger one. Throws UsageError where the grammar cannot give as many pairs.
Corpus generate(const GrammarOptions& options);

/// Writes the corpus into `directory` (made where it is missing), each file atomically. For each split: .en .de (text),
/// .align (Pharaoh), .en.conllu .de.conllu, .en.ptb .de.ptb, .coref.jsonl, .tags; and held_out.txt, grammar.json.
/// data/README.md describes them. Throws FileError.
void write(const Corpus& corpus, const std::string& directory);

}  // namespace headlab::grammar
