#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/data/grammar/gold.h"
#include "src/data/grammar/syntax.h"

namespace headlab::grammar {

/// What a token expresses: a part of an abstract node. Tokens of the two sides that share a meaning are aligned.
using Meaning = int;
enum class Part {
  determiner,
  noun,
  possessor,
  conjunction,
  preposition,
  verb,
  tense,
  modal,
  negation,
  adverb,
  subordinator,
  complement,
  punctuation,
  comma,
  predicate,
  /* and one more */ adjective = 16,
  /* and more */ parts = 20
};
inline Meaning meaning(int id, Part part, int index = 0) {
  return id * static_cast<int>(Part::parts) + static_cast<int>(part) + index;
}

/// A constituent, or a word where `token` is not -1.
struct Tree {
  std::string label;
  std::vector<Tree> children;
  int token = -1;
  int noun_phrase = 0;  // id of the noun phrase this constituent is, without its relative clause; 0: it is none
};

/// A constituent and the word that heads it.
struct Phrase {
  Tree tree;
  int head = -1;
};

/// A word before its position is known: heads are indices of words.
struct Word {
  std::string form, lemma, pos, features;
  std::vector<Meaning> meanings;
  int head = -1;
  std::string relation;
};

/// A pronoun as one side sees it.
struct PronounNote {
  int token;
  Meaning meaning;  // the same on both sides
  int antecedent;   // id of a noun phrase
  PronounKind kind;
  Agreement agreement;  // with the antecedent
};

/// Collects the words and notes of one side while its clauses are put in order.
struct Draft {
  std::vector<Word> words;
  std::vector<PronounNote> pronouns;

  int word(const std::string& form, const std::string& lemma, const std::string& pos, std::vector<Meaning> meanings,
           const std::string& features = "_") {
    words.push_back({form, lemma, pos, features, std::move(meanings), -1, ""});
    return static_cast<int>(words.size()) - 1;
  }
  void attach(int word, int head, const std::string& relation) {
    words[static_cast<std::size_t>(word)].head = head;
    words[static_cast<std::size_t>(word)].relation = relation;
  }
  Tree leaf(int word) const { return {words[static_cast<std::size_t>(word)].pos, {}, word, 0}; }
};

/// The two linearisations: a tree with its head, over the draft's words.
Phrase linearise_english(Draft& draft, const Utterance& utterance);
Phrase linearise_german(Draft& draft, const Utterance& utterance);

/// Brings both sides into their final order and works out every kind of gold.
Example finish(const Utterance& utterance);

}  // namespace headlab::grammar
