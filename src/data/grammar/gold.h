#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headlab::grammar {

/// Tokens first to last, both included, from 0.
struct Span {
  int first = 0, last = 0;
  bool operator==(const Span&) const = default;
};

struct GoldToken {
  std::string form, lemma;
  std::string pos;       // Universal Dependencies part of speech: NOUN, VERB, ADP ...
  std::string features;  // Universal Dependencies features, "_" for none
  int head = -1;         // index of the head in the sentence, -1 for the root
  std::string relation;  // Universal Dependencies relation
  bool space_before = true;
};

struct Constituent {
  std::string label;
  Span span;
};

struct GoldSentence {
  std::vector<GoldToken> tokens;
  std::vector<Constituent> constituents;  // in the order of their first tokens, outer before inner; no words
  std::string brackets;                   // "(ROOT (S (NP (DET The) (NOUN dog)) ...))"
};

enum class PronounKind { personal, possessive, relative };

/// A pronoun and the phrase it stands for. The label is what the German pronoun is whatever its case: er, sie or es;
/// sein or ihr; der, die or das. An English "it" is told apart by the label alone, that is by the gender of the
/// antecedent's German noun.
struct Pronoun {
  PronounKind kind = PronounKind::personal;
  int source = 0, target = 0;                 // token indices
  Span source_antecedent, target_antecedent;  // without the antecedent's relative clause
  char gender = 'n';                          // of the German antecedent: m, f, n
  bool plural = false;
  std::string label;
};

/// One pair with its gold. Text is detokenised; token lists, alignments and spans speak of `source_gold.tokens` and
/// `target_gold.tokens`.
struct Example {
  std::string source, target;
  GoldSentence source_gold, target_gold;
  std::vector<std::pair<int, int>> alignment;  // (source, target), sorted
  std::vector<Pronoun> pronouns;               // in the order of the source
  std::vector<std::string> tags;               // phenomena, sorted: "passive", "relative", "ambiguous_subject" ...
  std::vector<std::string> held_out;           // combinations kept out of training that occur: "adjective old dog"
};

}  // namespace headlab::grammar
