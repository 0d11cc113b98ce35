#include <algorithm>

#include "src/data/grammar/tree.h"

namespace headlab::grammar {
namespace {

using Type = NounPhrase::Type;

enum class Order { verb_second, verb_final };

std::string verb_features(const char* tense, const Agreement& subject) {
  return std::string("Number=") + (subject.plural ? "Plur" : "Sing") + "|Person=" + std::to_string(subject.person) +
         "|Tense=" + tense + "|VerbForm=Fin";
}

class German {
 public:
  explicit German(Draft& draft) : draft_(draft) {}

  Phrase utterance(const Utterance& u) {
    Tree root{"ROOT", {}, -1, 0};
    Phrase first = clause(u.clauses.front(), Order::verb_second);
    if (u.join == Utterance::Join::none) {
      close(first, u.clauses.front());
      root.children.push_back(first.tree);
    } else if (u.join == Utterance::Join::new_sentence) {
      close(first, u.clauses.front());
      Phrase second = clause(u.clauses.back(), Order::verb_second);
      close(second, u.clauses.back());
      draft_.attach(second.head, first.head, "parataxis");
      root.children = {first.tree, second.tree};
    } else {
      Phrase whole{{"S", {first.tree}, -1, 0}, first.head};
      const bool but = u.join == Utterance::Join::conjunction_but;
      const int comma = but ? draft_.word(",", ",", "PUNCT", {meaning(u.id, Part::comma)}) : -1;
      const std::string form = but ? "aber" : "und";
      const int conjunction = draft_.word(form, form, "CCONJ", {meaning(u.id, Part::conjunction)});
      Phrase second = clause(u.clauses.back(), Order::verb_second);
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

  struct Verbs {
    int finite = -1;
    std::vector<int> bracket;  // what stands at the clause's end: particle, participle, infinitive
    int head = -1;
  };

  void close(Phrase& sentence, const Clause& c) {
    const std::string mark = c.question ? "?" : ".";
    const int stop = draft_.word(mark, mark, "PUNCT", {meaning(c.id, Part::punctuation)});
    draft_.attach(stop, sentence.head, "punct");
    sentence.tree.children.push_back(draft_.leaf(stop));
  }

  Tree comma(int head, std::vector<Meaning> meanings = {}) {
    const int word = draft_.word(",", ",", "PUNCT", std::move(meanings));
    draft_.attach(word, head, "punct");
    return draft_.leaf(word);
  }

  /// `negation`: what "kein" stands for beside the article; -1: no negation.
  Phrase noun_phrase(const NounPhrase& np, Case c, Meaning negation = -1) {
    if (np.type == Type::coordination) return coordination(np, c);
    Tree core{"NP", {}, -1, np.id};
    int head = -1;
    if (np.type == Type::noun) {
      head = common(np, c, negation, core);
    } else {
      head = single(np, c);
      core.children.push_back(draft_.leaf(head));
    }
    if (np.relative.empty()) return {core, head};
    const Phrase relative = clause(np.relative.front(), Order::verb_final);
    draft_.attach(relative.head, head, "acl:relcl");
    Tree outer{"NP", {core, comma(relative.head), relative.tree, comma(relative.head)}, -1, 0};
    return {outer, head};
  }

  Phrase coordination(const NounPhrase& np, Case c) {
    const Phrase first = noun_phrase(np.members[0], c);
    const int conjunction = draft_.word("und", "und", "CCONJ", {meaning(np.id, Part::conjunction)});
    const Phrase second = noun_phrase(np.members[1], c);
    draft_.attach(second.head, first.head, "conj");
    draft_.attach(conjunction, second.head, "cc");
    return {{"NP", {first.tree, draft_.leaf(conjunction), second.tree}, -1, np.id}, first.head};
  }

  /// A name, a personal pronoun or a relative pronoun.
  int single(const NounPhrase& np, Case c) {
    const Meaning what = meaning(np.id, Part::noun);
    if (np.type == Type::name) {
      const std::string& form = names()[static_cast<std::size_t>(np.word)].form;
      return draft_.word(form, form, "PROPN", {what}, german::features(c, np.agreement));
    }
    const bool gap = np.type == Type::gap;
    const std::string form =
        gap ? german::relative_pronoun(c, np.agreement) : german::personal_pronoun(c, np.agreement);
    const std::string lemma = gap ? "der" : german::personal_pronoun(Case::nominative, np.agreement);
    const std::string features = np.agreement.person == 3
                                     ? german::features(c, np.agreement) + "|Person=3"
                                     : std::string("Number=") + (np.agreement.plural ? "Plur" : "Sing") + "|Person=1";
    const int word = draft_.word(form, lemma, "PRON", {what}, features + (gap ? "|PronType=Rel" : "|PronType=Prs"));
    if (np.antecedent != 0) {
      draft_.pronouns.push_back(
          {word, what, np.antecedent, gap ? PronounKind::relative : PronounKind::personal, np.agreement});
    }
    return word;
  }

  /// Determiner, adjectives, noun and a possessor after it; returns the noun.
  int common(const NounPhrase& np, Case c, Meaning negation, Tree& core) {
    const Noun& noun = nouns()[static_cast<std::size_t>(np.word)];
    const int determiner = determine(np, c, negation);
    const Determiner kind = negation >= 0 ? Determiner::negative : np.determiner;
    std::vector<int> adjectives_before;
    for (std::size_t i = 0; i < np.adjectives.size(); ++i) {
      const Adjective& adjective = adjectives()[static_cast<std::size_t>(np.adjectives[i])];
      adjectives_before.push_back(
          draft_.word(adjective.stem + german::adjective_ending(kind, c, np.agreement), adjective.de, "ADJ",
                      {meaning(np.id, Part::adjective, static_cast<int>(i))}, german::features(c, np.agreement)));
    }
    const int head = draft_.word(german::noun(noun, c, np.agreement.plural), noun.de, "NOUN",
                                 {meaning(np.id, Part::noun)}, german::features(c, np.agreement));
    if (determiner >= 0) {
      const bool owned = kind == Determiner::owner;
      const bool number = kind == Determiner::two || kind == Determiner::three;
      draft_.attach(determiner, head,
                    owned                            ? "nmod:poss"
                    : number                         ? "nummod"
                    : kind == Determiner::possessive ? "det:poss"
                                                     : "det");
      core.children.push_back(draft_.leaf(determiner));
    }
    for (int adjective : adjectives_before) {
      draft_.attach(adjective, head, "amod");
      core.children.push_back(draft_.leaf(adjective));
    }
    core.children.push_back(draft_.leaf(head));
    if (!np.possessor.empty()) {
      const Phrase possessor = noun_phrase(np.possessor.front(), Case::genitive);
      draft_.attach(possessor.head, head, "nmod:poss");
      core.children.push_back(possessor.tree);
    }
    return head;
  }

  int determine(const NounPhrase& np, Case c, Meaning negation) {
    const Agreement& of = np.agreement;
    const Meaning what = meaning(np.id, Part::determiner);
    const std::string features = german::features(c, of);
    if (negation >= 0) {
      std::vector<Meaning> meanings = {negation};
      if (np.determiner == Determiner::indefinite) meanings.push_back(what);
      return draft_.word("kein" + german::mixed_determiner_ending(c, of), "kein", "DET", meanings, features);
    }
    switch (np.determiner) {
      case Determiner::none:
        return -1;
      case Determiner::definite:
        if (!np.possessor.empty()) return draft_.word(german::article(c, of), "der", "DET", {}, features);
        return draft_.word(german::article(c, of), "der", "DET", {what}, features);
      case Determiner::indefinite:
        return draft_.word("ein" + german::mixed_determiner_ending(c, of), "ein", "DET", {what}, features);
      case Determiner::demonstrative:
        return draft_.word("dies" + german::strong_determiner_ending(c, of), "dieser", "DET", {what}, features);
      case Determiner::negative:
        return draft_.word("kein" + german::mixed_determiner_ending(c, of), "kein", "DET", {what}, features);
      case Determiner::possessive: {
        const std::string stem = german::possessive_stem(np.owner);
        const int word =
            draft_.word(stem + german::mixed_determiner_ending(c, of), stem, "DET", {what}, features + "|Poss=Yes");
        if (np.antecedent != 0) {
          draft_.pronouns.push_back({word, what, np.antecedent, PronounKind::possessive, np.owner});
        }
        return word;
      }
      case Determiner::two:
        return draft_.word("zwei", "zwei", "NUM", {what});
      case Determiner::three:
        return draft_.word("drei", "drei", "NUM", {what});
      case Determiner::owner: {
        const std::string& name = names()[static_cast<std::size_t>(np.owner_name)].form;
        return draft_.word(name + "s", name, "PROPN", {meaning(np.id, Part::possessor)}, "Case=Gen");
      }
    }
    return -1;
  }

  /// A preposition contracts with a definite article right after it: "im", "zur", "vom".
  Phrase prepositional(const std::string& preposition, const NounPhrase& np, Case c) {
    const int word = draft_.word(preposition, preposition, "ADP", {meaning(np.id, Part::preposition)});
    Phrase inner = noun_phrase(np, c);
    if (np.type == Type::noun && np.determiner == Determiner::definite) {
      Tree& core = np.relative.empty() ? inner.tree : inner.tree.children.front();
      const Word article = draft_.words[static_cast<std::size_t>(core.children.front().token)];
      const std::string contracted = german::contraction(preposition, article.form);
      if (!contracted.empty()) {
        Word& both = draft_.words[static_cast<std::size_t>(word)];
        both.form = contracted;
        both.meanings.insert(both.meanings.end(), article.meanings.begin(), article.meanings.end());
        core.children.erase(core.children.begin());
      }
    }
    draft_.attach(word, inner.head, "case");
    return {{"PP", {draft_.leaf(word), inner.tree}, -1, 0}, inner.head};
  }

  Verbs verbs(const Clause& c, const Agreement& subject, Order order) {
    const Verb& verb = grammar::verbs()[static_cast<std::size_t>(c.verb)];
    const bool copula = verb.frame == Frame::copula;
    const std::string pos = copula ? "AUX" : "VERB";
    const std::string lemma = verb.de_prefix + verb.de;
    const Meaning lexical = meaning(c.id, Part::verb);
    const bool simple = c.modal < 0 && (c.tense == Tense::present || c.tense == Tense::past);
    Verbs out;
    if (simple) {
      const bool past = c.tense == Tense::past;
      const std::string form = past ? german::past(verb, subject) : german::present(verb, subject);
      const bool joined = order == Order::verb_final;
      out.finite = draft_.word(joined ? verb.de_prefix + form : form, lemma, pos, {lexical},
                               verb_features(past ? "Past" : "Pres", subject));
      out.head = out.finite;
      if (!joined && !verb.de_prefix.empty()) {
        out.bracket.push_back(draft_.word(verb.de_prefix, verb.de_prefix, "ADP", {lexical}));
        draft_.attach(out.bracket.back(), out.head, "compound:prt");
      }
      return out;
    }
    std::string finite, finite_lemma, form = lemma, features = "VerbForm=Inf";
    Part part = Part::tense;
    const char* tense = "Pres";
    if (c.modal >= 0) {
      const Modal& modal = modals()[static_cast<std::size_t>(c.modal)];
      finite = german::modal(modal, c.tense, subject);
      finite_lemma = modal.de;
      part = Part::modal;
      if (c.tense == Tense::past) tense = "Past";
    } else if (c.tense == Tense::perfect) {
      finite = verb.sein ? german::sein(subject) : german::haben(subject);
      finite_lemma = verb.sein ? "sein" : "haben";
      form = verb.de_participle;
      features = "VerbForm=Part";
    } else {
      finite = german::werden(subject);
      finite_lemma = "werden";
    }
    out.finite = draft_.word(finite, finite_lemma, "AUX", {meaning(c.id, part)}, verb_features(tense, subject));
    out.head = draft_.word(form, lemma, pos, {lexical}, features);
    out.bracket.push_back(out.head);
    draft_.attach(out.finite, out.head, "aux");
    return out;
  }

  /// A clause without its final stop. The parts between the brackets stand in this order: subject, pronouns, adverb,
  /// recipient, object, "nicht", free phrases, the object with a preposition, predicate.
  Phrase clause(const Clause& c, Order order, const Agreement* shared_subject = nullptr) {
    const Verb& verb = grammar::verbs()[static_cast<std::size_t>(c.verb)];
    const Agreement agreement = shared_subject != nullptr ? *shared_subject : c.subject.front().agreement;
    const Verbs verbal = verbs(c, agreement, order);
    int head = verbal.head;
    Tree predicate{"AP", {}, -1, 0};
    if (!c.predicate.empty()) {
      head = adjectives_after(c, predicate);
      for (std::size_t i = 0; i < verbal.bracket.size(); ++i) draft_.attach(verbal.bracket[i], head, "cop");
      draft_.attach(verbal.finite, head, verbal.bracket.empty() ? "cop" : "aux");
    }

    std::vector<Tree> front, middle, behind;  // before the finite verb (or first), between the brackets, after them
    const bool main = order == Order::verb_second;
    const bool subject_first = main && !c.question && !c.object_first && c.front == Clause::Front::subject;

    if (!c.subject.empty()) {
      const Phrase subject = noun_phrase(c.subject.front(), Case::nominative);
      draft_.attach(subject.head, head, "nsubj");
      (subject_first || c.subject.front().type == Type::gap ? front : middle).push_back(subject.tree);
    }

    const NounPhrase* object = c.object.empty() ? nullptr : &c.object.front();
    const NounPhrase* recipient = c.recipient.empty() ? nullptr : &c.recipient.front();
    const bool with_preposition = verb.frame == Frame::prepositional;
    const bool no_article = object != nullptr && !with_preposition && object->type == Type::noun &&
                            (object->determiner == Determiner::indefinite || object->determiner == Determiner::none);
    const Meaning negation = meaning(c.id, Part::negation);

    std::vector<Tree> pronouns, objects, after_negation;
    if (recipient != nullptr) {
      const Phrase phrase = noun_phrase(*recipient, Case::dative);
      draft_.attach(phrase.head, head, "iobj");
      place(*recipient, phrase.tree, false, front, pronouns, objects);
    }
    if (object != nullptr) {
      const Phrase phrase = with_preposition
                                ? prepositional(verb.de_preposition, *object, verb.governs)
                                : noun_phrase(*object, verb.frame == Frame::dative ? Case::dative : Case::accusative,
                                              c.negated && no_article ? negation : -1);
      draft_.attach(phrase.head, head, with_preposition || verb.frame == Frame::dative ? "obl:arg" : "obj");
      if (with_preposition && object->type != Type::gap) {
        after_negation.push_back(phrase.tree);
      } else {
        place(*object, phrase.tree, c.object_first, front, pronouns, objects);
      }
    }
    middle.insert(middle.end(), pronouns.begin(), pronouns.end());

    if (c.adverb >= 0) {
      const Adverb& adverb = adverbs()[static_cast<std::size_t>(c.adverb)];
      const int word = draft_.word(adverb.de, adverb.de, "ADV", {meaning(c.id, Part::adverb)});
      draft_.attach(word, head, "advmod");
      Tree tree{"ADVP", {draft_.leaf(word)}, -1, 0};
      (main && c.front == Clause::Front::adverb ? front : middle).push_back(tree);
    }
    middle.insert(middle.end(), objects.begin(), objects.end());
    if (c.negated && !no_article) {
      const int word = draft_.word("nicht", "nicht", "PART", {negation}, "Polarity=Neg");
      draft_.attach(word, head, "advmod");
      middle.push_back(draft_.leaf(word));
    }
    std::vector<Tree> phrases;
    for (std::size_t i = 0; i < c.phrases.size(); ++i) {
      const Preposition& preposition = prepositions()[static_cast<std::size_t>(c.phrases[i].preposition)];
      const Phrase phrase = prepositional(preposition.de, c.phrases[i].noun_phrase, preposition.governs);
      draft_.attach(phrase.head, head, "obl");
      const bool first =
          c.phrases[i].noun_phrase.type == Type::gap || (main && i == 0 && c.front == Clause::Front::phrase);
      (first ? front : phrases).push_back(phrase.tree);
    }
    middle.insert(middle.end(), phrases.begin(), phrases.end());
    middle.insert(middle.end(), after_negation.begin(), after_negation.end());
    if (!c.predicate.empty()) middle.push_back(predicate);

    if (!c.complement.empty()) {
      const Clause& inner = c.complement.front();
      const Phrase phrase = subordinate("dass", meaning(inner.id, Part::complement), inner);
      draft_.attach(phrase.head, head, "ccomp");
      behind.push_back(comma(phrase.head));
      behind.push_back(phrase.tree);
    }
    if (!c.subordinate.empty()) {
      const Clause& inner = c.subordinate.front();
      const Phrase phrase = subordinate(subordinators()[static_cast<std::size_t>(c.subordinator)].de,
                                        meaning(inner.id, Part::subordinator), inner);
      draft_.attach(phrase.head, head, "advcl");
      if (c.front == Clause::Front::subordinate) {
        front.push_back(phrase.tree);
        front.push_back(comma(phrase.head, {meaning(c.id, Part::comma)}));
      } else {
        behind.push_back(comma(phrase.head));
        behind.push_back(phrase.tree);
      }
    }

    Tree tree{"S", std::move(front), -1, 0};
    const auto add = [&tree](const std::vector<Tree>& parts) {
      tree.children.insert(tree.children.end(), parts.begin(), parts.end());
    };
    if (main) tree.children.push_back(draft_.leaf(verbal.finite));
    add(middle);
    for (int word : verbal.bracket) tree.children.push_back(draft_.leaf(word));
    if (!main) tree.children.push_back(draft_.leaf(verbal.finite));
    add(behind);

    if (!c.shared.empty()) {
      const Clause& second = c.shared.front();
      const int conjunction = draft_.word("und", "und", "CCONJ", {meaning(second.id, Part::conjunction)});
      const Phrase phrase = clause(second, order, &agreement);
      draft_.attach(phrase.head, head, "conj");
      draft_.attach(conjunction, phrase.head, "cc");
      tree.children.push_back(draft_.leaf(conjunction));
      tree.children.push_back(phrase.tree);
    }
    return {tree, head};
  }

  static void place(const NounPhrase& np, const Tree& tree, bool first, std::vector<Tree>& front,
                    std::vector<Tree>& pronouns, std::vector<Tree>& objects) {
    const bool in_front = first || np.type == Type::gap;
    (in_front ? front : np.type == Type::pronoun ? pronouns : objects).push_back(tree);
  }

  int adjectives_after(const Clause& c, Tree& phrase) {
    int head = -1;
    for (std::size_t i = 0; i < c.predicate.size(); ++i) {
      int conjunction = -1;
      if (i > 0) {
        conjunction = draft_.word("und", "und", "CCONJ", {meaning(c.id, Part::conjunction)});
        phrase.children.push_back(draft_.leaf(conjunction));
      }
      const std::string& form = adjectives()[static_cast<std::size_t>(c.predicate[i])].de;
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
    const Phrase phrase = clause(inner, Order::verb_final);
    draft_.attach(word, phrase.head, "mark");
    return {{"SBAR", {draft_.leaf(word), phrase.tree}, -1, 0}, phrase.head};
  }
};

}  // namespace

Phrase linearise_german(Draft& draft, const Utterance& utterance) { return German(draft).utterance(utterance); }

}  // namespace headlab::grammar
