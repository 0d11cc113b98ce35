#include "src/data/grammar/combinations.h"

#include <set>

#include "modules/base/random.h"
#include "src/data/grammar/walk.h"

namespace headlab::grammar {
namespace {

/// "look_for", "get_up": the particle tells verbs apart.
std::string name_of(const Verb& verb) {
  std::string name = verb.en;
  for (const std::string& more : {verb.en_particle, verb.en_preposition}) {
    if (!more.empty()) name += "_" + more;
  }
  return name;
}

using NounUse = void (*)(std::set<std::string>&, const Verb&, const Noun&);

void add_nouns(std::set<std::string>& out, const Verb& verb, const NounPhrase& np, NounUse use) {
  if (np.type == NounPhrase::Type::coordination) {
    for (const NounPhrase& member : np.members) add_nouns(out, verb, member, use);
  }
  const bool noun = np.type == NounPhrase::Type::noun || np.type == NounPhrase::Type::gap;
  if (noun && !np.of_name) use(out, verb, nouns()[static_cast<std::size_t>(np.word)]);
}

std::string pair(const char* relation, const std::string& first, const std::string& second) {
  return std::string(relation) + " " + first + " " + second;
}

void subject_pair(std::set<std::string>& out, const Verb& verb, const Noun& noun) {
  if (verb.frame != Frame::copula) out.insert(pair("subject", noun.en, name_of(verb)));
}
void object_pair(std::set<std::string>& out, const Verb& verb, const Noun& noun) {
  out.insert(pair("object", name_of(verb), noun.en));
}
void recipient_pair(std::set<std::string>& out, const Verb& verb, const Noun& noun) {
  out.insert(pair("recipient", name_of(verb), noun.en));
}

/// Pairs of a clause; a predicate that shares its subject with the clause before is given that subject.
void add(std::set<std::string>& out, const Clause& c, const std::vector<NounPhrase>& subject) {
  const Verb& verb = verbs()[static_cast<std::size_t>(c.verb)];
  for (const NounPhrase& np : subject) {
    add_nouns(out, verb, np, subject_pair);
    for (int adjective : c.predicate) {
      const auto add_adjective = [&](const NounPhrase& of) {
        const bool noun = of.type == NounPhrase::Type::noun || of.type == NounPhrase::Type::gap;
        if (!noun || of.of_name) return;
        out.insert(pair("adjective", adjectives()[static_cast<std::size_t>(adjective)].en,
                        nouns()[static_cast<std::size_t>(of.word)].en));
      };
      if (np.type == NounPhrase::Type::coordination) {
        for (const NounPhrase& member : np.members) add_adjective(member);
      } else {
        add_adjective(np);
      }
    }
  }
  for (const NounPhrase& np : c.object) add_nouns(out, verb, np, object_pair);
  for (const NounPhrase& np : c.recipient) add_nouns(out, verb, np, recipient_pair);
  walk_phrases(c, [&](const NounPhrase& np) {
    for (int adjective : np.adjectives) {
      out.insert(pair("adjective", adjectives()[static_cast<std::size_t>(adjective)].en,
                      nouns()[static_cast<std::size_t>(np.word)].en));
    }
  });
  for (const Clause& shared : c.shared) add(out, shared, subject);
}

}  // namespace

std::vector<std::string> combinations(const Utterance& utterance) {
  std::set<std::string> out;
  walk_clauses(utterance, [&](const Clause& c) {
    if (!c.subject.empty()) add(out, c, c.subject);
  });
  return {out.begin(), out.end()};
}

bool is_held_out(const std::string& combination, int64_t percent) {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (unsigned char byte : combination) hash = (hash ^ byte) * 0x100000001b3ULL;
  return static_cast<int64_t>(Random(hash).next() % 100) < percent;
}

std::vector<std::string> possible_combinations() {
  std::set<std::string> out;
  for (const Noun& noun : nouns()) {
    for (const Adjective& adjective : adjectives()) {
      if (adjective.of & noun.kind) out.insert(pair("adjective", adjective.en, noun.en));
    }
    for (const Verb& verb : verbs()) {
      if (verb.subject & noun.kind) subject_pair(out, verb, noun);
      if (verb.object & noun.kind) object_pair(out, verb, noun);
      if (verb.frame == Frame::ditransitive && noun.kind == person) recipient_pair(out, verb, noun);
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace headlab::grammar
