#include <sstream>

#include "src/data/grammar/tree.h"

namespace headlab::grammar {
namespace {

using Type = NounPhrase::Type;

std::string number_feature(const Agreement& of) { return of.plural ? "Number=Plur" : "Number=Sing"; }

class English {
 public:
  explicit English(Draft& draft) : draft_(draft) {}

  Phrase utterance(const Utterance& u) {
    Tree root{"ROOT", {}, -1, 0};
    Phrase first = clause(u.clauses.front());
    if (u.join == Utterance::Join::none) {
      close(first, u.clauses.front());
      root.children.push_back(first.tree);
    } else if (u.join == Utterance::Join::new_sentence) {
      close(first, u.clauses.front());
      Phrase second = clause(u.clauses.back());
      close(second, u.clauses.back());
      draft_.attach(second.head, first.head, "parataxis");
      root.children = {first.tree, second.tree};
    } else {
      Phrase whole{{"S", {first.tree}, -1, 0}, first.head};
      const bool but = u.join == Utterance::Join::conjunction_but;
      const int comma = but ? draft_.word(",", ",", "PUNCT", {meaning(u.id, Part::comma)}) : -1;
      const std::string form = but ? "but" : "and";
      const int conjunction = draft_.word(form, form, "CCONJ", {meaning(u.id, Part::conjunction)});
      Phrase second = clause(u.clauses.back());
      draft_.attach(second.head, first.head, "conj");
      draft_.attach(conjunction, second.head, "cc");
      if (but) {
        draft_.attach(comma, second.head, "punct");
        whole.tree.children.push_back(draft_.leaf(comma));
      }
      whole.tree.children.push_back(draft_.leaf(conjunction));
      whole.tree.children.push_back(second.tree);
      close(whole, u.clauses.back());
      root.children.push_back(whole.tree);
    }
    draft_.attach(first.head, -1, "root");
    return {root, first.head};
  }

 private:
  Draft& draft_;

  /// The verbs before they are words: the first is finite, each later one has the form that the one before asks for.
  struct Link {
    const english::Paradigm* verb = nullptr;  // nullptr: a modal, whose forms are in `modal`
    const Modal* modal = nullptr;
    bool plain = false;  // the modal's forms with "do": "have to"
    Part part = Part::verb;
    bool participle_next = false;
  };

  struct Verbs {
    std::vector<int> words;     // finite first
    std::size_t adverb_at = 0;  // where an adverb of frequency goes
    int head = -1;
  };

  void close(Phrase& sentence, const Clause& c) {
    const std::string mark = c.question ? "?" : ".";
    const int stop = draft_.word(mark, mark, "PUNCT", {meaning(c.id, Part::punctuation)});
    draft_.attach(stop, sentence.head, "punct");
    sentence.tree.children.push_back(draft_.leaf(stop));
  }

  static std::vector<std::string> split(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }

  /// How a phrase is used decides the pronoun's form.
  enum class Use { subject, object, after_preposition };

  Phrase noun_phrase(const NounPhrase& np, Use use) {
    if (np.type == Type::coordination) return coordination(np, use);
    Tree core{"NP", {}, -1, np.id};
    int head = -1;
    if (np.type == Type::noun) {
      head = common(np, core);
    } else {
      head = single(np, use);
      core.children.push_back(draft_.leaf(head));
    }
    if (np.relative.empty()) return {core, head};
    Phrase relative = clause(np.relative.front());
    draft_.attach(relative.head, head, "acl:relcl");
    relative.tree.label = "SBAR";
    return {{"NP", {core, relative.tree}, -1, 0}, head};
  }

  Phrase coordination(const NounPhrase& np, Use use) {
    const Phrase first = noun_phrase(np.members[0], use);
    const int conjunction = draft_.word("and", "and", "CCONJ", {meaning(np.id, Part::conjunction)});
    const Phrase second = noun_phrase(np.members[1], use);
    draft_.attach(second.head, first.head, "conj");
    draft_.attach(conjunction, second.head, "cc");
    return {{"NP", {first.tree, draft_.leaf(conjunction), second.tree}, -1, np.id}, first.head};
  }

  int single(const NounPhrase& np, Use use) {
    const Meaning what = meaning(np.id, Part::noun);
    if (np.type == Type::name) {
      const std::string& form = names()[static_cast<std::size_t>(np.word)].form;
      return draft_.word(form, form, "PROPN", {what}, "Number=Sing");
    }
    const bool gap = np.type == Type::gap;
    std::string form, lemma;
    if (gap) {
      const bool of_person = np.kind() == person;
      if (use == Use::subject) {
        form = of_person ? "who" : "that";
      } else {
        form = of_person ? "whom" : use == Use::object ? "that" : "which";
      }
      lemma = of_person ? "who" : form;
    } else {
      form = english::personal_pronoun(use == Use::subject, np.agreement, np.kind());
      lemma = english::personal_pronoun(true, np.agreement, np.kind());
    }
    const int word = draft_.word(
        form, lemma, "PRON", {what},
        gap ? "PronType=Rel"
            : number_feature(np.agreement) + "|Person=" + std::to_string(np.agreement.person) + "|PronType=Prs");
    if (np.antecedent != 0) {
      draft_.pronouns.push_back(
          {word, what, np.antecedent, gap ? PronounKind::relative : PronounKind::personal, np.agreement});
    }
    return word;
  }

  int common(const NounPhrase& np, Tree& core) {
    const Noun& noun = nouns()[static_cast<std::size_t>(np.word)];
    const std::string form = np.agreement.plural ? noun.en_plural : noun.en;
    std::vector<int> before;
    std::string next = form;
    if (!np.adjectives.empty()) next = adjectives()[static_cast<std::size_t>(np.adjectives.front())].en;
    int possessor = -1;
    if (!np.possessor.empty()) {
      const NounPhrase& owner = np.possessor.front();
      Phrase phrase = noun_phrase(owner, Use::object);
      const bool bare = owner.agreement.plural && owner.type == Type::noun &&
                        nouns()[static_cast<std::size_t>(owner.word)].en_plural.back() == 's';
      const int mark = draft_.word(bare ? "'" : "'s", "'s", "PART", {meaning(owner.id, Part::determiner)});
      draft_.attach(mark, phrase.head, "case");
      possessor = phrase.head;
      core.children.push_back({"NP", {phrase.tree, draft_.leaf(mark)}, -1, 0});
    } else if (np.determiner == Determiner::owner) {
      const std::string& name = names()[static_cast<std::size_t>(np.owner_name)].form;
      possessor = draft_.word(name, name, "PROPN", {meaning(np.id, Part::possessor)}, "Number=Sing");
      const int mark = draft_.word("'s", "'s", "PART", {meaning(np.id, Part::possessor)});
      draft_.attach(mark, possessor, "case");
      core.children.push_back({"NP", {draft_.leaf(possessor), draft_.leaf(mark)}, -1, 0});
    } else {
      const int determiner = determine(np, next);
      if (determiner >= 0) before.push_back(determiner);
    }
    const std::size_t determiners = before.size();
    for (std::size_t i = 0; i < np.adjectives.size(); ++i) {
      const std::string& adjective = adjectives()[static_cast<std::size_t>(np.adjectives[i])].en;
      before.push_back(
          draft_.word(adjective, adjective, "ADJ", {meaning(np.id, Part::adjective, static_cast<int>(i))}));
    }
    const int head = draft_.word(form, noun.en, "NOUN", {meaning(np.id, Part::noun)}, number_feature(np.agreement));
    const bool number = np.determiner == Determiner::two || np.determiner == Determiner::three;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const char* relation = i >= determiners                          ? "amod"
                             : number                                  ? "nummod"
                             : np.determiner == Determiner::possessive ? "nmod:poss"
                                                                       : "det";
      draft_.attach(before[i], head, relation);
      core.children.push_back(draft_.leaf(before[i]));
    }
    if (possessor >= 0) draft_.attach(possessor, head, "nmod:poss");
    core.children.push_back(draft_.leaf(head));
    return head;
  }

  int determine(const NounPhrase& np, const std::string& next) {
    const Meaning what = meaning(np.id, Part::determiner);
    const auto word = [&](const std::string& form, const std::string& lemma, const char* pos) {
      return draft_.word(form, lemma, pos, {what});
    };
    switch (np.determiner) {
      case Determiner::none:
      case Determiner::owner:
        return -1;
      case Determiner::definite:
        return word("the", "the", "DET");
      case Determiner::indefinite:
        return word(english::indefinite(next), "a", "DET");
      case Determiner::demonstrative:
        return word(np.agreement.plural ? "these" : "this", "this", "DET");
      case Determiner::negative:
        return word("no", "no", "DET");
      case Determiner::two:
        return word("two", "two", "NUM");
      case Determiner::three:
        return word("three", "three", "NUM");
      case Determiner::possessive: {
        const std::string form = english::possessive(np.owner, np.owner_kind);
        const int index = draft_.word(form, form, "PRON", {what}, "Poss=Yes|PronType=Prs");
        if (np.antecedent != 0) {
          draft_.pronouns.push_back({index, what, np.antecedent, PronounKind::possessive, np.owner});
        }
        return index;
      }
    }
    return -1;
  }

  /// A preposition may have several words; the later ones hang on the first.
  Phrase prepositional(const std::string& preposition, std::vector<Meaning> meanings, const NounPhrase& np) {
    Tree tree{"PP", {}, -1, 0};
    int first = -1;
    for (const std::string& form : split(preposition)) {
      const int word = draft_.word(form, form, "ADP", meanings);
      if (first < 0) {
        first = word;
      } else {
        draft_.attach(word, first, "fixed");
      }
      tree.children.push_back(draft_.leaf(word));
    }
    const Phrase inner = noun_phrase(np, Use::after_preposition);
    draft_.attach(first, inner.head, "case");
    tree.children.push_back(inner.tree);
    return {tree, inner.head};
  }

  Verbs verbs(const Clause& c, const Agreement& subject) {
    const Verb& verb = grammar::verbs()[static_cast<std::size_t>(c.verb)];
    const bool copula = verb.frame == Frame::copula;
    const english::Paradigm lexical = english::paradigm(verb);
    std::vector<Link> chain;
    bool past = c.tense == Tense::past;
    if (c.modal >= 0) {
      const Modal& modal = modals()[static_cast<std::size_t>(c.modal)];
      const bool plain = !modal.plain.empty() && (c.negated || c.question);
      chain.push_back({nullptr, &modal, plain, Part::modal, false});
    } else if (c.tense == Tense::perfect) {
      chain.push_back({&english::have(), nullptr, false, Part::tense, true});
    } else if (c.tense == Tense::future) {
      chain.push_back({nullptr, nullptr, false, Part::tense, false});  // "will"
    }
    if (c.object_first) chain.push_back({&english::be(), nullptr, false, Part::verb, true});
    chain.push_back({&lexical, nullptr, false, Part::verb, false});
    const bool inverts = chain.size() > 1 ? !chain.front().plain : copula;
    if ((c.negated || c.question) && !inverts) {
      chain.insert(chain.begin(), {&english::do_(), nullptr, false, chain.front().part, false});
    }

    Verbs out;
    const Meaning negation = meaning(c.id, Part::negation);
    bool participle = false;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const Link& link = chain[i];
      const bool last = i + 1 == chain.size();
      std::string form, lemma;
      if (link.modal != nullptr) {
        const Modal& m = *link.modal;
        lemma = split(m.en).front();
        if (i > 0) {
          form = m.plain;  // after "do"
        } else {
          form = past ? m.en_past : subject.plural || subject.person == 1 ? m.en : m.en_third;
        }
      } else if (link.verb == nullptr) {
        form = lemma = "will";
      } else {
        lemma = link.verb->base;
        form = i == 0       ? english::finite(*link.verb, past, subject)
               : participle ? link.verb->participle
                            : link.verb->base;
      }
      participle = link.participle_next;
      std::vector<Meaning> meanings = {meaning(c.id, link.part)};
      if (i == 0 && c.negated && form == "can") {
        form = "cannot";
        meanings.push_back(negation);
      }
      if (last && !copula) out.adverb_at = i == 0 ? 0 : out.words.size();
      const std::string pos = last && !copula ? "VERB" : "AUX";
      const std::string features = i == 0 ? std::string("Tense=") + (past ? "Past" : "Pres") + "|VerbForm=Fin" : "_";
      bool first = true;
      for (const std::string& part : split(form)) {
        const bool to = !first;
        out.words.push_back(draft_.word(part, to ? "to" : lemma, to ? "PART" : pos, meanings, to ? "_" : features));
        first = false;
      }
      if (last) out.head = out.words.back();
      if (i == 0 && c.negated && form != "cannot") {
        out.words.push_back(draft_.word("not", "not", "PART", {negation}, "Polarity=Neg"));
      }
      if (i == 0 && copula) out.adverb_at = out.words.size();
    }
    return out;
  }

  /// Hangs the verbs on the clause's head, which is an adjective after "be".
  void attach_verbs(const Verbs& verbal, int head, bool copula, bool passive) {
    for (std::size_t i = 0; i < verbal.words.size(); ++i) {
      const int word = verbal.words[i];
      if (word == head) continue;
      const Word& w = draft_.words[static_cast<std::size_t>(word)];
      const bool next_to_verb = i + 1 < verbal.words.size() && verbal.words[i + 1] == verbal.head;
      std::string relation = "aux";
      if (w.lemma == "not") relation = "advmod";
      if (w.lemma == "to") relation = "mark";
      if (copula && word == verbal.head) relation = "cop";
      if (passive && next_to_verb && w.lemma == "be") relation = "aux:pass";
      draft_.attach(word, head, relation);
    }
  }

  Phrase clause(const Clause& c, const Agreement* shared_subject = nullptr) {
    const Verb& verb = grammar::verbs()[static_cast<std::size_t>(c.verb)];
    const bool copula = verb.frame == Frame::copula;
    const NounPhrase* subject = c.subject.empty() ? nullptr : &c.subject.front();
    const NounPhrase* object = c.object.empty() ? nullptr : &c.object.front();
    const NounPhrase* agent = nullptr;
    if (c.object_first) {
      agent = subject;
      subject = object;
      object = nullptr;
    }
    const Agreement agreement = shared_subject != nullptr ? *shared_subject : subject->agreement;
    const Verbs verbal = verbs(c, agreement);
    int head = verbal.head;
    Tree predicate{"ADJP", {}, -1, 0};
    if (!c.predicate.empty()) head = adjectives_after(c, predicate);
    attach_verbs(verbal, head, copula, c.object_first);

    std::vector<Tree> front, rest;  // before the subject; after the verbs
    Tree subject_tree;
    if (subject != nullptr) {
      const Phrase phrase = noun_phrase(*subject, Use::subject);
      draft_.attach(phrase.head, head, c.object_first ? "nsubj:pass" : "nsubj");
      subject_tree = phrase.tree;
    }

    int particle = -1;
    if (!verb.en_particle.empty()) {
      particle = draft_.word(verb.en_particle, verb.en_particle, "ADP", {meaning(c.id, Part::verb)});
      draft_.attach(particle, head, "compound:prt");
      const bool after_object = object != nullptr && object->type == Type::pronoun;
      if (!after_object) rest.push_back(draft_.leaf(particle));
    }
    const NounPhrase* recipient = c.recipient.empty() ? nullptr : &c.recipient.front();
    const bool recipient_with_to = recipient != nullptr && (c.recipient_last || recipient->type == Type::gap);
    if (recipient != nullptr && !recipient_with_to) {
      const Phrase phrase = noun_phrase(*recipient, Use::object);
      draft_.attach(phrase.head, head, "iobj");
      rest.push_back(phrase.tree);
    }
    if (object != nullptr) {
      Phrase phrase;
      if (verb.en_preposition.empty()) {
        phrase = noun_phrase(*object, Use::object);
        draft_.attach(phrase.head, head, "obj");
      } else {
        // Where German has no preposition, the English one belongs to the verb: "look for" is "suchen".
        const bool own = verb.de_preposition.empty();
        phrase = prepositional(verb.en_preposition,
                               {own ? meaning(c.id, Part::verb) : meaning(object->id, Part::preposition)}, *object);
        draft_.attach(phrase.head, head, "obl");
      }
      (object->type == Type::gap ? front : rest).push_back(phrase.tree);
      if (particle >= 0 && object->type == Type::pronoun) rest.push_back(draft_.leaf(particle));
    }
    if (recipient_with_to) {
      const Phrase phrase = prepositional("to", {meaning(recipient->id, Part::preposition)}, *recipient);
      draft_.attach(phrase.head, head, "obl");
      (recipient->type == Type::gap ? front : rest).push_back(phrase.tree);
    }
    if (!c.predicate.empty()) rest.push_back(predicate);
    if (agent != nullptr) {
      const Phrase phrase = prepositional("by", {meaning(agent->id, Part::preposition)}, *agent);
      draft_.attach(phrase.head, head, "obl:agent");
      rest.push_back(phrase.tree);
    }
    for (std::size_t i = 0; i < c.phrases.size(); ++i) {
      const NounPhrase& np = c.phrases[i].noun_phrase;
      const Phrase phrase = prepositional(prepositions()[static_cast<std::size_t>(c.phrases[i].preposition)].en,
                                          {meaning(np.id, Part::preposition)}, np);
      draft_.attach(phrase.head, head, "obl");
      const bool first = np.type == Type::gap || (i == 0 && c.front == Clause::Front::phrase);
      (first ? front : rest).push_back(phrase.tree);
    }

    std::vector<Tree> verb_trees;
    for (int word : verbal.words) verb_trees.push_back(draft_.leaf(word));
    if (c.adverb >= 0) {
      const Adverb& adverb = adverbs()[static_cast<std::size_t>(c.adverb)];
      const int word = draft_.word(adverb.en, adverb.en, "ADV", {meaning(c.id, Part::adverb)});
      draft_.attach(word, head, "advmod");
      const Tree tree{"ADVP", {draft_.leaf(word)}, -1, 0};
      if (adverb.kind == AdverbKind::frequency) {
        verb_trees.insert(verb_trees.begin() + static_cast<std::ptrdiff_t>(verbal.adverb_at), tree);
      } else if (c.front == Clause::Front::adverb) {
        front.push_back(tree);
      } else {
        rest.push_back(tree);
      }
    }
    if (!c.complement.empty()) {
      const Clause& inner = c.complement.front();
      const Phrase phrase = subordinate("that", meaning(inner.id, Part::complement), inner);
      draft_.attach(phrase.head, head, "ccomp");
      rest.push_back(phrase.tree);
    }
    if (!c.subordinate.empty()) {
      const Clause& inner = c.subordinate.front();
      const Phrase phrase = subordinate(subordinators()[static_cast<std::size_t>(c.subordinator)].en,
                                        meaning(inner.id, Part::subordinator), inner);
      draft_.attach(phrase.head, head, "advcl");
      if (c.front == Clause::Front::subordinate) {
        const int comma = draft_.word(",", ",", "PUNCT", {meaning(c.id, Part::comma)});
        draft_.attach(comma, phrase.head, "punct");
        front.push_back(phrase.tree);
        front.push_back(draft_.leaf(comma));
      } else {
        rest.push_back(phrase.tree);
      }
    }

    Tree tree{"S", std::move(front), -1, 0};
    if (c.question) {  // the finite verb comes before the subject
      tree.children.push_back(verb_trees.front());
      verb_trees.erase(verb_trees.begin());
    }
    if (subject != nullptr) tree.children.push_back(subject_tree);
    Tree predicate_tree{"VP", std::move(verb_trees), -1, 0};
    predicate_tree.children.insert(predicate_tree.children.end(), rest.begin(), rest.end());
    if (!c.shared.empty()) {
      const Clause& second = c.shared.front();
      const int conjunction = draft_.word("and", "and", "CCONJ", {meaning(second.id, Part::conjunction)});
      const Phrase phrase = clause(second, &agreement);
      draft_.attach(phrase.head, head, "conj");
      draft_.attach(conjunction, phrase.head, "cc");
      predicate_tree = {"VP", {predicate_tree, draft_.leaf(conjunction), phrase.tree.children.front()}, -1, 0};
    }
    tree.children.push_back(predicate_tree);
    return {tree, head};
  }

  int adjectives_after(const Clause& c, Tree& phrase) {
    int head = -1;
    for (std::size_t i = 0; i < c.predicate.size(); ++i) {
      int conjunction = -1;
      if (i > 0) {
        conjunction = draft_.word("and", "and", "CCONJ", {meaning(c.id, Part::conjunction)});
        phrase.children.push_back(draft_.leaf(conjunction));
      }
      const std::string& form = adjectives()[static_cast<std::size_t>(c.predicate[i])].en;
      const int word = draft_.word(form, form, "ADJ", {meaning(c.id, Part::predicate, static_cast<int>(i))});
      phrase.children.push_back(draft_.leaf(word));
      if (i == 0) {
        head = word;
      } else {
        draft_.attach(word, head, "conj");
        draft_.attach(conjunction, word, "cc");
      }
    }
    return head;
  }

  Phrase subordinate(const std::string& opening, Meaning what, const Clause& inner) {
    const int word = draft_.word(opening, opening, "SCONJ", {what});
    const Phrase phrase = clause(inner);
    draft_.attach(word, phrase.head, "mark");
    return {{"SBAR", {draft_.leaf(word), phrase.tree}, -1, 0}, phrase.head};
  }
};

}  // namespace

Phrase linearise_english(Draft& draft, const Utterance& utterance) { return English(draft).utterance(utterance); }

}  // namespace headlab::grammar
