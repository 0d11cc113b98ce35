#include "src/data/grammar/inflection.h"

#include <array>
#include <map>
#include <utility>

namespace headlab::grammar {
namespace {

/// A column of an inflection table: masculine, feminine, neuter, plural.
std::size_t column(const Agreement& of) { return of.plural ? 3 : static_cast<std::size_t>(of.gender); }

/// Rows in the order of Case: nominative, accusative, dative, genitive.
using Table = std::array<std::array<const char*, 4>, 4>;

std::string look_up(const Table& table, Case c, const Agreement& of) {
  return table[static_cast<std::size_t>(c)][column(of)];
}

bool ends_with(const std::string& word, const std::string& ending) {
  return word.size() >= ending.size() && word.compare(word.size() - ending.size(), ending.size(), ending) == 0;
}

}  // namespace

namespace german {

std::string article(Case c, const Agreement& of) {
  static const Table table = {{{"der", "die", "das", "die"},
                               {"den", "die", "das", "die"},
                               {"dem", "der", "dem", "den"},
                               {"des", "der", "des", "der"}}};
  return look_up(table, c, of);
}

std::string relative_pronoun(Case c, const Agreement& of) {
  return c == Case::dative && of.plural ? "denen" : article(c, of);
}

std::string personal_pronoun(Case c, const Agreement& of) {
  static const Table table = {{{"er", "sie", "es", "sie"},
                               {"ihn", "sie", "es", "sie"},
                               {"ihm", "ihr", "ihm", "ihnen"},
                               {"seiner", "ihrer", "seiner", "ihrer"}}};
  static const std::array<const char*, 4> first = {"ich", "mich", "mir", "meiner"}, we = {"wir", "uns", "uns", "unser"};
  if (of.person == 1) return (of.plural ? we : first)[static_cast<std::size_t>(c)];
  return look_up(table, c, of);
}

std::string possessive_stem(const Agreement& owner) {
  if (owner.person == 1) return owner.plural ? "unser" : "mein";
  return owner.plural || owner.gender == Gender::feminine ? "ihr" : "sein";
}

std::string strong_determiner_ending(Case c, const Agreement& of) {
  static const Table table = {
      {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}, {"es", "er", "es", "er"}}};
  return look_up(table, c, of);
}

std::string mixed_determiner_ending(Case c, const Agreement& of) {
  static const Table table = {
      {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}, {"es", "er", "es", "er"}}};
  return look_up(table, c, of);
}

std::string adjective_ending(Determiner after, Case c, const Agreement& of) {
  static const Table weak = {
      {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}, {"en", "en", "en", "en"}}};
  static const Table mixed = {
      {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}, {"en", "en", "en", "en"}}};
  static const Table strong = {
      {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}, {"en", "er", "en", "er"}}};
  switch (after) {
    case Determiner::definite:
    case Determiner::demonstrative:
      return look_up(weak, c, of);
    case Determiner::indefinite:
    case Determiner::negative:
    case Determiner::possessive:
      return look_up(mixed, c, of);
    case Determiner::none:
    case Determiner::two:
    case Determiner::three:
    case Determiner::owner:
      return look_up(strong, c, of);
  }
  return "";
}

std::string noun(const Noun& noun, Case c, bool plural) {
  if (plural) {
    const bool takes_n = c == Case::dative && !ends_with(noun.de_plural, "n") && !ends_with(noun.de_plural, "s");
    return noun.de_plural + (takes_n ? "n" : "");
  }
  if (c == Case::genitive || (noun.weak && c != Case::nominative)) return noun.de + noun.ending;
  return noun.de;
}

std::string contraction(const std::string& preposition, const std::string& article) {
  static const std::map<std::pair<std::string, std::string>, std::string> table = {
      {{"in", "dem"}, "im"},  {{"in", "das"}, "ins"}, {{"an", "dem"}, "am"},   {{"an", "das"}, "ans"},
      {{"zu", "dem"}, "zum"}, {{"zu", "der"}, "zur"}, {{"von", "dem"}, "vom"},
  };
  const auto found = table.find({preposition, article});
  return found == table.end() ? "" : found->second;
}

std::string present(const Verb& verb, const Agreement& subject) {
  if (verb.frame == Frame::copula) return sein(subject);
  if (subject.plural) return verb.de;
  if (subject.person == 3) return verb.de_third;
  if (!verb.de_first.empty()) return verb.de_first;
  const std::size_t cut = ends_with(verb.de, "en") ? 2 : 1;  // "seh-en", "fütter-n"
  return verb.de.substr(0, verb.de.size() - cut) + "e";
}

std::string past(const Verb& verb, const Agreement& subject) {
  if (!subject.plural) return verb.de_past;
  return verb.de_past + (ends_with(verb.de_past, "e") ? "n" : "en");
}

std::string modal(const Modal& modal, Tense tense, const Agreement& subject) {
  if (tense == Tense::past) return modal.de_past + (subject.plural ? "n" : "");
  return subject.plural ? modal.de : modal.de_singular;
}

std::string haben(const Agreement& subject) { return subject.plural ? "haben" : subject.person == 1 ? "habe" : "hat"; }

std::string sein(const Agreement& subject) { return subject.plural ? "sind" : subject.person == 1 ? "bin" : "ist"; }

std::string werden(const Agreement& subject) {
  return subject.plural ? "werden" : subject.person == 1 ? "werde" : "wird";
}

std::string features(Case c, const Agreement& of) {
  static const std::array<const char*, 4> cases = {"Nom", "Acc", "Dat", "Gen"};
  static const std::array<const char*, 3> genders = {"Masc", "Fem", "Neut"};
  return std::string("Case=") + cases[static_cast<std::size_t>(c)] +
         "|Gender=" + genders[static_cast<std::size_t>(of.gender)] + "|Number=" + (of.plural ? "Plur" : "Sing");
}

}  // namespace german

namespace english {

std::string personal_pronoun(bool subject, const Agreement& of, Kind antecedent) {
  if (of.person == 1) return of.plural ? (subject ? "we" : "us") : (subject ? "I" : "me");
  if (of.plural) return subject ? "they" : "them";
  if (antecedent != person) return "it";
  if (of.gender == Gender::feminine) return subject ? "she" : "her";
  return subject ? "he" : "him";
}

std::string possessive(const Agreement& owner, Kind antecedent) {
  if (owner.person == 1) return owner.plural ? "our" : "my";
  if (owner.plural) return "their";
  if (antecedent != person) return "its";
  return owner.gender == Gender::feminine ? "her" : "his";
}

std::string indefinite(const std::string& before) {
  return std::string("aeiou").find(before.at(0)) == std::string::npos ? "a" : "an";
}

Paradigm paradigm(const Verb& verb) {
  if (verb.frame == Frame::copula) return be();
  return {verb.en, verb.en, verb.en_third, verb.en, verb.en_past, verb.en_past, verb.en_participle};
}

const Paradigm& be() {
  static const Paradigm forms = {"be", "am", "is", "are", "was", "were", "been"};
  return forms;
}

const Paradigm& have() {
  static const Paradigm forms = {"have", "have", "has", "have", "had", "had", "had"};
  return forms;
}

const Paradigm& do_() {
  static const Paradigm forms = {"do", "do", "does", "do", "did", "did", "done"};
  return forms;
}

std::string finite(const Paradigm& verb, bool past, const Agreement& subject) {
  if (past) return subject.plural ? verb.past_plural : verb.past;
  if (subject.plural) return verb.plural;
  return subject.person == 1 ? verb.first : verb.third;
}

}  // namespace english
}  // namespace headlab::grammar
