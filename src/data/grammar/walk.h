#pragma once

#include "src/data/grammar/syntax.h"

namespace headlab::grammar {

/// Calls `see(noun_phrase)` for this phrase, its members and its possessor; not for what is in its relative clause.
template <class See>
void walk_noun_phrase(const NounPhrase& np, See&& see) {
  see(np);
  for (const NounPhrase& member : np.members) walk_noun_phrase(member, see);
  for (const NounPhrase& possessor : np.possessor) walk_noun_phrase(possessor, see);
}

/// Calls `see(noun_phrase)` for each phrase that is a part of this clause, their own parts included.
template <class See>
void walk_phrases(const Clause& c, See&& see) {
  for (const auto* list : {&c.subject, &c.recipient, &c.object}) {
    for (const NounPhrase& np : *list) walk_noun_phrase(np, see);
  }
  for (const PrepositionalPhrase& phrase : c.phrases) walk_noun_phrase(phrase.noun_phrase, see);
}

/// Calls `see(clause)` for a clause and every clause inside it, outer ones first.
template <class See>
void walk_clauses(const Clause& c, See&& see) {
  see(c);
  walk_phrases(c, [&](const NounPhrase& np) {
    for (const Clause& relative : np.relative) walk_clauses(relative, see);
  });
  for (const auto* list : {&c.complement, &c.subordinate, &c.shared}) {
    for (const Clause& inner : *list) walk_clauses(inner, see);
  }
}

template <class See>
void walk_clauses(const Utterance& u, See&& see) {
  for (const Clause& c : u.clauses) walk_clauses(c, see);
}

}  // namespace headlab::grammar
