#pragma once

#include <vector>

#include "src/data/grammar/inflection.h"

namespace headlab::grammar {

/// Abstract syntax: what a pair of sentences says, before either language orders and inflects it. Lexemes are indices
/// into the lexicon's lists; -1: none. Each node has an id that its tokens on both sides carry, so that what belongs
/// together is known by construction. Vectors with at most one element stand for optional parts of a recursive type.

struct Clause;

struct NounPhrase {
  enum class Type { noun, name, pronoun, coordination, gap };  // gap: the place of a relative pronoun

  int id = 0;
  Type type = Type::noun;
  int word = -1;         // noun or name; of a pronoun or a gap: its antecedent's
  bool of_name = false;  // word of a pronoun is a name
  Agreement agreement;
  int antecedent = 0;  // id of a pronoun's, a gap's or a possessive's antecedent; 0: none ("I", "my")
  Determiner determiner = Determiner::none;
  Agreement owner;           // of a possessive or an owner's name
  Kind owner_kind = person;  // of a possessive's antecedent
  int owner_name = -1;       // Determiner::owner
  std::vector<int> adjectives;
  std::vector<NounPhrase> possessor;  // the man's dog / der Hund des Mannes
  std::vector<NounPhrase> members;    // of a coordination: two
  std::vector<Clause> relative;

  Kind kind() const {
    if (type == Type::coordination) return members.front().kind();
    if (type == Type::name || of_name || word < 0) return person;
    return nouns()[static_cast<std::size_t>(word)].kind;
  }
};

struct PrepositionalPhrase {
  int preposition = -1;
  NounPhrase noun_phrase;
};

struct Clause {
  enum class Front { subject, adverb, phrase, subordinate };

  int id = 0;
  int verb = -1;
  Tense tense = Tense::present;
  int modal = -1;
  bool negated = false;
  bool question = false;
  bool object_first = false;    // an English passive with "by", a German clause that begins with its object
  bool recipient_last = false;  // English "gives the ball to the woman"; German has one order
  Front front = Front::subject;
  std::vector<NounPhrase> subject;  // empty in the second part of a coordination that shares it
  std::vector<NounPhrase> recipient;
  std::vector<NounPhrase> object;
  std::vector<PrepositionalPhrase> phrases;
  std::vector<int> predicate;  // adjectives after "be", at most two
  int adverb = -1;
  std::vector<Clause> complement;  // "that ..."
  int subordinator = -1;           // of `subordinate`
  std::vector<Clause> subordinate;
  std::vector<Clause> shared;  // "sings and dances": a second predicate with the same subject
};

/// One line of the corpus: a clause, two clauses joined by "and" or "but", or two sentences.
struct Utterance {
  enum class Join { none, conjunction_and, conjunction_but, new_sentence };
  int id = 0;
  Join join = Join::none;
  std::vector<Clause> clauses;
};

}  // namespace headlab::grammar
