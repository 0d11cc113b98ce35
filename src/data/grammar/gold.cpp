#include "src/data/grammar/gold.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "src/data/grammar/tree.h"
#include "src/data/grammar/walk.h"

namespace headlab::grammar {
namespace {

using Type = NounPhrase::Type;

void leaves(const Tree& tree, std::vector<int>& out) {
  if (tree.token >= 0) out.push_back(tree.token);
  for (const Tree& child : tree.children) leaves(child, out);
}

void remove(Tree& tree, const std::set<int>& words) {
  auto& children = tree.children;
  for (Tree& child : children) remove(child, words);
  children.erase(std::remove_if(children.begin(), children.end(),
                                [&](const Tree& child) {
                                  return child.token >= 0 ? words.count(child.token) > 0 : child.children.empty();
                                }),
                 children.end());
}

/// One side in its final order.
struct Side {
  Draft draft;
  Tree tree;
  std::vector<int> order;       // word of each position
  std::map<int, int> position;  // of each word
  std::map<int, Span> phrases;  // of each noun phrase's id
  GoldSentence gold;
  std::string text;

  const Word& word(std::size_t i) const { return draft.words[static_cast<std::size_t>(order[i])]; }
};

/// Clauses write a comma at each of their ends; of two in a row one stays, before the stop none.
void drop_commas(Side& side) {
  std::vector<int> order;
  leaves(side.tree, order);
  std::set<int> dropped;
  const auto form = [&](std::size_t i) -> const std::string& {
    return side.draft.words[static_cast<std::size_t>(order[i])].form;
  };
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (form(i) == "," && (form(i + 1) == "," || form(i + 1) == "." || form(i + 1) == "?")) dropped.insert(order[i]);
  }
  remove(side.tree, dropped);
  leaves(side.tree, side.order);
  for (std::size_t i = 0; i < side.order.size(); ++i) side.position[side.order[i]] = static_cast<int>(i);
}

/// Writes brackets and spans; returns the span of the constituent.
Span describe(Side& side, const Tree& tree) {
  if (tree.token >= 0) {
    const int at = side.position.at(tree.token);
    side.gold.brackets += "(" + tree.label + " " + side.gold.tokens[static_cast<std::size_t>(at)].form + ")";
    return {at, at};
  }
  const std::size_t mine = side.gold.constituents.size();
  side.gold.constituents.push_back({tree.label, {}});
  side.gold.brackets += "(" + tree.label;
  Span span{-1, -1};
  for (const Tree& child : tree.children) {
    side.gold.brackets += " ";
    const Span part = describe(side, child);
    if (span.first < 0) span.first = part.first;
    span.last = part.last;
  }
  side.gold.brackets += ")";
  side.gold.constituents[mine].span = span;
  if (tree.noun_phrase != 0) side.phrases[tree.noun_phrase] = span;
  return span;
}

Side finish_side(Phrase (*linearise)(Draft&, const Utterance&), const Utterance& utterance) {
  Side side;
  side.tree = linearise(side.draft, utterance).tree;
  drop_commas(side);
  bool begins = true;
  for (std::size_t i = 0; i < side.order.size(); ++i) {
    const Word& word = side.word(i);
    GoldToken token{word.form, word.lemma, word.pos, word.features, -1, word.relation, true};
    if (begins && token.form[0] >= 'a' && token.form[0] <= 'z') {
      token.form[0] = static_cast<char>(token.form[0] - 'a' + 'A');
    }
    begins = token.form == "." || token.form == "?";
    token.space_before = i > 0 && token.pos != "PUNCT" && token.form[0] != '\'';
    if (word.head >= 0) token.head = side.position.at(word.head);
    side.text += (token.space_before ? " " : "") + token.form;
    side.gold.tokens.push_back(std::move(token));
  }
  describe(side, side.tree);
  return side;
}

std::string label(const PronounNote& note) {
  switch (note.kind) {
    case PronounKind::personal:
      return german::personal_pronoun(Case::nominative, note.agreement);
    case PronounKind::possessive:
      return german::possessive_stem(note.agreement);
    case PronounKind::relative:
      return german::relative_pronoun(Case::nominative, note.agreement);
  }
  throw std::logic_error("a pronoun of no kind");
}

std::vector<Pronoun> match_pronouns(const Side& source, const Side& target) {
  std::vector<Pronoun> out;
  for (const PronounNote& note : source.draft.pronouns) {
    const auto& notes = target.draft.pronouns;
    const auto same = std::find_if(notes.begin(), notes.end(),
                                   [&](const PronounNote& other) { return other.meaning == note.meaning; });
    if (same == notes.end()) throw std::logic_error("a pronoun without its counterpart");
    Pronoun pronoun;
    pronoun.kind = note.kind;
    pronoun.source = source.position.at(note.token);
    pronoun.target = target.position.at(same->token);
    pronoun.source_antecedent = source.phrases.at(note.antecedent);
    pronoun.target_antecedent = target.phrases.at(note.antecedent);
    pronoun.gender = "mfn"[static_cast<std::size_t>(note.agreement.gender)];
    pronoun.plural = note.agreement.plural;
    pronoun.label = label(note);
    out.push_back(pronoun);
  }
  std::sort(out.begin(), out.end(), [](const Pronoun& a, const Pronoun& b) { return a.source < b.source; });
  return out;
}

/// Nominative and accusative look alike.
bool unmarked(const NounPhrase& np) {
  if (np.type == Type::coordination) return std::all_of(np.members.begin(), np.members.end(), unmarked);
  if (np.type == Type::name) return true;
  if (np.agreement.person == 1) return false;
  return np.agreement.plural || np.agreement.gender != Gender::masculine;
}

/// Case and agreement allow either phrase to be the subject.
bool ambiguous(const Clause& c) {
  if (verbs()[static_cast<std::size_t>(c.verb)].frame != Frame::accusative) return false;
  if (c.subject.empty() || c.object.empty()) return false;
  const NounPhrase &subject = c.subject.front(), &object = c.object.front();
  return unmarked(subject) && unmarked(object) && subject.agreement.plural == object.agreement.plural;
}

void tag_clause(const Clause& c, bool main, std::set<std::string>& tags) {
  const Verb& verb = verbs()[static_cast<std::size_t>(c.verb)];
  const auto tag = [&tags](bool holds, const char* name) {
    if (holds) tags.insert(name);
  };
  const bool gap = (!c.subject.empty() && c.subject.front().type == Type::gap) ||
                   (!c.object.empty() && c.object.front().type == Type::gap);
  tag(main && !c.question && c.front == Clause::Front::subject && ambiguous(c), "ambiguous_subject");
  tag(gap && ambiguous(c), "ambiguous_relative");
  tag(c.object_first, "passive");
  tag(c.question, "question");
  tag(c.negated, "negation");
  tag(c.modal >= 0, "modal");
  tag(!verb.de_prefix.empty(), "separable");
  tag(c.tense == Tense::past, "past");
  tag(c.tense == Tense::perfect, "perfect");
  tag(c.tense == Tense::future, "future");
  tag(main && (c.object_first || c.front != Clause::Front::subject), "inversion");
  tag(!main, "verb_final");
  tag(!c.complement.empty(), "complement");
  tag(!c.subordinate.empty(), "subordinate");
  tag(!c.shared.empty(), "coordination");
  walk_phrases(c, [&](const NounPhrase& np) {
    tag(!np.relative.empty(), "relative");
    tag(!np.possessor.empty() || np.determiner == Determiner::owner, "genitive");
    tag(np.type == Type::coordination, "coordination");
  });
}

std::vector<std::string> tags_of(const Utterance& u, const std::vector<Pronoun>& pronouns) {
  std::set<std::string> tags;
  std::set<int> main;
  for (const Clause& c : u.clauses) {
    main.insert(c.id);
    for (const Clause& shared : c.shared) main.insert(shared.id);
  }
  walk_clauses(u, [&](const Clause& c) { tag_clause(c, main.count(c.id) > 0, tags); });
  if (u.join == Utterance::Join::new_sentence) tags.insert("two_sentences");
  if (u.join == Utterance::Join::conjunction_and || u.join == Utterance::Join::conjunction_but) {
    tags.insert("coordination");
  }
  for (const Pronoun& pronoun : pronouns) {
    if (pronoun.kind == PronounKind::personal) tags.insert("pronoun");
    if (pronoun.kind == PronounKind::possessive) tags.insert("possessive");
  }
  return {tags.begin(), tags.end()};
}

}  // namespace

Example finish(const Utterance& utterance) {
  const Side source = finish_side(linearise_english, utterance), target = finish_side(linearise_german, utterance);
  Example example;
  example.source = source.text;
  example.target = target.text;
  example.source_gold = source.gold;
  example.target_gold = target.gold;
  for (std::size_t i = 0; i < source.order.size(); ++i) {
    for (std::size_t j = 0; j < target.order.size(); ++j) {
      const auto &a = source.word(i).meanings, &b = target.word(j).meanings;
      const bool shared =
          std::any_of(a.begin(), a.end(), [&](Meaning what) { return std::find(b.begin(), b.end(), what) != b.end(); });
      if (shared) example.alignment.emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
  example.pronouns = match_pronouns(source, target);
  example.tags = tags_of(utterance, example.pronouns);
  return example;
}

}  // namespace headlab::grammar
