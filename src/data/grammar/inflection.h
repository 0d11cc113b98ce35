#pragma once

#include <string>

#include "src/data/grammar/lexicon.h"

namespace headlab::grammar {

enum class Tense { present, past, perfect, future };

/// Person (1 or 3), number and gender: what articles, verbs and pronouns agree with.
struct Agreement {
  int person = 3;
  bool plural = false;
  Gender gender = Gender::neuter;
  bool operator==(const Agreement&) const = default;
};

enum class Determiner {
  none,           // "old dogs"
  definite,       // the / der
  indefinite,     // a / ein; singular only
  demonstrative,  // this / dieser
  negative,       // no / kein
  possessive,     // my, our, his, her, its, their
  two,
  three,
  owner,  // a name: Anna's dog / Annas Hund
};

namespace german {

/// der, die, das ...; also the relative pronoun but for the dative plural ("denen").
std::string article(Case c, const Agreement& of);
std::string relative_pronoun(Case c, const Agreement& of);
std::string personal_pronoun(Case c, const Agreement& of);
/// The possessive's stem for its owner: mein, unser, sein, ihr.
std::string possessive_stem(const Agreement& owner);
/// Endings of "dies-" and of "ein", "kein", "mein".
std::string strong_determiner_ending(Case c, const Agreement& of);
std::string mixed_determiner_ending(Case c, const Agreement& of);
/// An attributive adjective's ending: weak after der and dieser, mixed after ein, kein, mein, strong after all else.
std::string adjective_ending(Determiner after, Case c, const Agreement& of);
std::string noun(const Noun& noun, Case c, bool plural);
/// "im" for in + dem, and so on; empty where the two do not contract.
std::string contraction(const std::string& preposition, const std::string& article);

/// Finite forms (without the separable prefix).
std::string present(const Verb& verb, const Agreement& subject);
std::string past(const Verb& verb, const Agreement& subject);
std::string modal(const Modal& modal, Tense tense, const Agreement& subject);
std::string haben(const Agreement& subject);
std::string sein(const Agreement& subject);
std::string werden(const Agreement& subject);

/// Universal Dependencies features: "Case=Dat|Gender=Masc|Number=Sing".
std::string features(Case c, const Agreement& of);

}  // namespace german

namespace english {

std::string personal_pronoun(bool subject, const Agreement& of, Kind antecedent);
std::string possessive(const Agreement& owner, Kind antecedent);
/// "a" or "an".
std::string indefinite(const std::string& before);

/// A verb's forms; `first` and `plural` differ from `base` for "be" alone.
struct Paradigm {
  std::string base, first, third, plural, past, past_plural, participle;
};
Paradigm paradigm(const Verb& verb);
const Paradigm& be();
const Paradigm& have();
const Paradigm& do_();
std::string finite(const Paradigm& verb, bool past, const Agreement& subject);

}  // namespace english
}  // namespace headlab::grammar
