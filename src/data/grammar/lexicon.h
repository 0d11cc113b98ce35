#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab::grammar {

enum class Gender { masculine, feminine, neuter };
enum class Case { nominative, accusative, dative, genitive };

/// What a noun names. Verbs, adjectives and prepositions say which kinds they go with, as a set of bits.
enum Kind : uint32_t {
  person = 1 << 0,
  animal = 1 << 1,
  food = 1 << 2,
  reading = 1 << 3,
  clothing = 1 << 4,
  object = 1 << 5,
  opening = 1 << 6,  // doors and windows
  vehicle = 1 << 7,
  furniture = 1 << 8,  // one may be on or under it
  way = 1 << 9,        // streets and bridges
  place = 1 << 10,     // one may be in it
  event = 1 << 11,
};
using Kinds = uint32_t;
inline constexpr Kinds animate = person | animal;
inline constexpr Kinds goods = food | reading | clothing | object | vehicle | furniture;
inline constexpr Kinds things = goods | opening | way | place;

/// A weak masculine ("der Junge", "den Jungen") has its ending in every case but the nominative singular.
struct Noun {
  std::string en, en_plural, de, de_plural;
  Gender gender;
  Kind kind;
  std::string ending;  // of the genitive singular; for weak nouns of the accusative and dative too
  bool weak = false;
};

/// A first name; its English and German forms are the same.
struct Name {
  std::string form;
  Gender gender;
};

/// What an adjective measures: of one scale a thing has one value, so that nothing is both big and small.
enum class Scale { none, size, age, price, mood, colour };

struct Adjective {
  std::string en, de, stem;  // "expensive", "teuer", "teur" (before endings)
  Kinds of;
  Scale scale = Scale::none;
};

/// What a verb takes beside its subject.
enum class Frame {
  intransitive,
  accusative,
  dative,
  prepositional,  // an object with the verb's own preposition
  ditransitive,   // a recipient (dative) and an object (accusative)
  motion,         // a directional phrase: "into the house"
  sentential,     // a clause with "that"
  copula,
};

struct Verb {
  std::string en, en_third, en_past, en_participle;
  std::string en_particle, en_preposition;  // "pick *up*", "look *for*"; empty: none
  std::string de, de_prefix;                // infinitive without its separable prefix, and the prefix; empty: none
  std::string de_third, de_past, de_participle;
  bool sein;  // builds its perfect with "sein", not "haben"
  Frame frame;
  Kinds subject, object;
  std::string de_preposition;  // of a prepositional frame
  Case governs = Case::accusative;
  std::string de_first;  // first person singular of the present; empty: regular
};

struct Modal {
  std::string en, en_third, en_past;           // affirmative: "must", "must", "had to" (words apart by spaces)
  std::string plain, plain_third, plain_past;  // with "do": "have to"; empty: the modal negates and inverts by itself
  std::string de, de_singular, de_past;        // infinitive, ich/er form, past; English without a past: present only
};

enum class AdverbKind { time, frequency, manner, here };
enum class AdverbTense { any, past, present, future };
struct Adverb {
  std::string en, de;
  AdverbKind kind;
  AdverbTense tense = AdverbTense::any;
};

/// A preposition of a free phrase. English ones may have several words.
struct Preposition {
  std::string en, de;
  Case governs;
  Kinds of;
  bool direction = false;  // only with verbs of motion
};

/// A word that opens a subordinate clause.
struct Subordinator {
  std::string en, de;
};

const std::vector<Noun>& nouns();
const std::vector<Name>& names();
const std::vector<Adjective>& adjectives();
const std::vector<Verb>& verbs();
const std::vector<Modal>& modals();
const std::vector<Adverb>& adverbs();
const std::vector<Preposition>& prepositions();
const std::vector<Subordinator>& subordinators();

}  // namespace headlab::grammar
