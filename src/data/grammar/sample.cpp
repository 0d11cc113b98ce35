#include "src/data/grammar/sample.h"

#include <algorithm>
#include <set>
#include <string>

#include "src/data/grammar/draw.h"
#include "src/data/grammar/walk.h"

namespace headlab::grammar {
namespace {

using Type = NounPhrase::Type;

/// Thrown and caught in this file: the draw led nowhere.
struct DeadEnd {};

const Noun& noun_of(const NounPhrase& np) { return nouns()[static_cast<std::size_t>(np.word)]; }
const Verb& verb_of(const Clause& c) { return verbs()[static_cast<std::size_t>(c.verb)]; }

bool fits(const NounPhrase& np, Kinds kinds) {
  if (np.type == Type::coordination) {
    return std::all_of(np.members.begin(), np.members.end(), [&](const NounPhrase& m) { return fits(m, kinds); });
  }
  return (np.kind() & kinds) != 0;
}

/// What a clause must be before the rest of it is drawn.
struct Plan {
  Tense tense = Tense::present;
  bool embedded = false;  // verb-final in German, or the second part of a line: plainer
  bool modal = true, negation = true, adverb = true, phrase = true;
  std::vector<Frame> frames;                // empty: all but sentential
  std::vector<NounPhrase> subject, object;  // given ones
  std::vector<int> predicate;               // given adjectives: the clause says "is ..."
};

enum class Role { subject, object, recipient, phrase };

class Sampler {
 public:
  explicit Sampler(Random& random) : random_(random) {}

  Utterance utterance() {
    using Make = Utterance (Sampler::*)();
    static const std::vector<Make> kinds = {&Sampler::plain,       &Sampler::question,        &Sampler::passive,
                                            &Sampler::joined,      &Sampler::with_complement, &Sampler::two_sentences,
                                            &Sampler::coordinated, &Sampler::shared};
    static const std::vector<std::size_t> weights = {36, 6, 9, 18, 8, 11, 7, 5};
    return (this->*kinds[weighted(random_, weights)])();
  }

 private:
  Random& random_;
  int next_id_ = 1;
  std::set<int> used_nouns_, used_names_;
  bool relative_used_ = false, first_person_used_ = false;

  int new_id() { return next_id_++; }

  // Noun phrases.

  NounPhrase common(Kinds kinds, Role role, bool plain) {
    std::vector<int> fitting;
    for (std::size_t i = 0; i < nouns().size(); ++i) {
      const int word = static_cast<int>(i);
      if ((nouns()[i].kind & kinds) && used_nouns_.count(word) == 0) fitting.push_back(word);
    }
    if (fitting.empty()) throw DeadEnd{};
    NounPhrase np;
    np.id = new_id();
    np.word = pick(random_, fitting);
    used_nouns_.insert(np.word);
    np.agreement.gender = noun_of(np).gender;
    np.agreement.plural = chance(random_, 25);
    determine(np, role, plain);
    describe(np);
    return np;
  }

  void determine(NounPhrase& np, Role role, bool plain) {
    using enum Determiner;
    static const std::vector<Determiner> kinds = {
        definite, indefinite, demonstrative, possessive, two, three, owner, definite /* with a possessor */, negative};
    std::vector<std::size_t> weights = {46, 20, 10, 8, 3, 3, 4, 4, 3};
    if (role == Role::phrase) weights = {70, 10, 8, 8, 0, 0, 4, 0, 0};
    if (!np.agreement.plural) weights[4] = weights[5] = 0;
    if (role != Role::subject || plain) weights[8] = 0;
    if (plain) weights[7] = 0;
    const std::size_t drawn = weighted(random_, weights);
    np.determiner = kinds[drawn];
    if (np.determiner == indefinite && np.agreement.plural) np.determiner = none;
    if (np.determiner == possessive) np.owner = {1, chance(random_, 30), Gender::neuter};
    if (np.determiner == owner) np.owner_name = name();
    if (drawn == 7) {
      NounPhrase possessor;
      const bool things = (noun_of(np).kind & (place | way | event)) != 0;
      if (things) return;  // "the man's bridge" is no better than "the bridge"
      possessor = common(person, Role::phrase, true);
      possessor.adjectives.clear();
      if (possessor.determiner != possessive && possessor.determiner != demonstrative) possessor.determiner = definite;
      possessor.owner_name = -1;
      np.possessor.push_back(possessor);
    }
  }

  void describe(NounPhrase& np) {
    const std::size_t count = weighted(random_, {62, 33, 5});
    for (std::size_t i = 0; i < count; ++i) {
      const int drawn = adjective(np.kind(), 0);
      if (goes_with(drawn, np.adjectives)) np.adjectives.push_back(drawn);
    }
  }

  static bool goes_with(int adjective, const std::vector<int>& others) {
    const Scale scale = adjectives()[static_cast<std::size_t>(adjective)].scale;
    return std::none_of(others.begin(), others.end(), [&](int other) {
      const bool one_scale = scale != Scale::none && adjectives()[static_cast<std::size_t>(other)].scale == scale;
      return other == adjective || one_scale;
    });
  }

  /// An adjective for each of these kinds and none of those.
  int adjective(Kinds each, Kinds none) {
    std::vector<int> fitting;
    for (std::size_t i = 0; i < adjectives().size(); ++i) {
      const Kinds of = adjectives()[i].of;
      if ((of & each) == each && !(of & none)) fitting.push_back(static_cast<int>(i));
    }
    if (fitting.empty()) throw DeadEnd{};
    return pick(random_, fitting);
  }

  int name() {
    std::vector<int> left;
    for (std::size_t i = 0; i < names().size(); ++i) {
      if (used_names_.count(static_cast<int>(i)) == 0) left.push_back(static_cast<int>(i));
    }
    if (left.empty()) throw DeadEnd{};
    const int drawn = pick(random_, left);
    used_names_.insert(drawn);
    return drawn;
  }

  NounPhrase noun_phrase(Kinds kinds, Role role, const Plan& plan) {
    const bool of_person = (kinds & person) != 0;
    if (of_person && role != Role::phrase && !first_person_used_ && chance(random_, 6)) {
      NounPhrase np;
      np.id = new_id();
      np.type = Type::pronoun;
      np.agreement = {1, chance(random_, 35), Gender::neuter};
      first_person_used_ = true;
      return np;
    }
    if (of_person && chance(random_, 10)) {
      NounPhrase np;
      np.id = new_id();
      np.type = Type::name;
      np.word = name();
      np.agreement.gender = names()[static_cast<std::size_t>(np.word)].gender;
      return np;
    }
    if (role != Role::phrase && !plan.embedded && chance(random_, 6)) {
      NounPhrase np;
      np.type = Type::coordination;
      np.members = {common(kinds, Role::object, true), common(kinds, Role::object, true)};
      np.id = new_id();
      np.agreement = {3, true, Gender::neuter};
      return np;
    }
    NounPhrase np = common(kinds, role, plan.embedded);
    if (role != Role::phrase && !plan.embedded) add_relative(np);
    return np;
  }

  void add_relative(NounPhrase& np) {
    using enum Determiner;
    const bool suits = np.determiner == definite || np.determiner == indefinite || np.determiner == none ||
                       np.determiner == demonstrative || np.determiner == two || np.determiner == three;
    if (relative_used_ || !suits || !np.possessor.empty() || !chance(random_, 14)) return;
    relative_used_ = true;
    NounPhrase gap;
    gap.id = new_id();
    gap.type = Type::gap;
    gap.word = np.word;
    gap.agreement = np.agreement;
    gap.antecedent = np.id;
    Plan plan;
    plan.embedded = true;
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    if (np.kind() == place && chance(random_, 60)) {
      plan.frames = {Frame::intransitive, Frame::accusative};
      plan.phrase = false;
      Clause c = clause(plan);
      c.phrases.push_back({0, gap});  // "in which"
      np.relative.push_back(c);
    } else if (np.kind() != event && chance(random_, 55)) {
      plan.subject = {gap};
      np.relative.push_back(clause(plan));
    } else {
      plan.object = {gap};
      np.relative.push_back(clause(plan));
    }
  }

  /// "his", "her", "its", "their": of the clause's own subject.
  void own(NounPhrase& np, const NounPhrase& subject) {
    const bool third = subject.type != Type::pronoun && subject.agreement.person == 3;
    if (np.type != Type::noun || !np.possessor.empty() || !np.relative.empty() || !third) return;
    if (subject.determiner == Determiner::negative || !clear_gender(subject) || !chance(random_, 14)) return;
    if (!fits(subject, animate)) return;
    np.determiner = Determiner::possessive;
    np.owner = subject.agreement;
    np.owner_kind = subject.kind();
    np.owner_name = -1;
    np.antecedent = subject.type == Type::gap ? subject.antecedent : subject.id;
  }

  /// "das Mädchen" is "she" in English and "es" or "sie" in German: such nouns are no antecedents in the singular.
  static bool clear_gender(const NounPhrase& np) {
    return np.agreement.plural || np.kind() != person || np.agreement.gender != Gender::neuter;
  }

  // Clauses.

  int pick_verb(const Plan& plan) {
    static const std::vector<Frame> frames = {Frame::intransitive,  Frame::accusative,   Frame::dative,
                                              Frame::prepositional, Frame::ditransitive, Frame::motion,
                                              Frame::copula};
    static const std::vector<std::size_t> weights = {18, 40, 8, 9, 9, 7, 12};
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Frame frame = plan.frames.empty() ? frames[weighted(random_, weights)] : pick(random_, plan.frames);
      std::vector<int> fitting;
      for (std::size_t i = 0; i < verbs().size(); ++i) {
        const Verb& verb = verbs()[i];
        if (verb.frame != frame) continue;
        if (!plan.subject.empty() && !fits(plan.subject.front(), verb.subject)) continue;
        if (!plan.object.empty()) {
          const NounPhrase& object = plan.object.front();
          if (!fits(object, verb.object)) continue;
          // "auf ihn" is said of persons and animals; of things it would be "darauf".
          if (frame == Frame::prepositional && object.type == Type::pronoun && !fits(object, animate)) continue;
          if (frame == Frame::ditransitive && object.type == Type::pronoun) continue;
        }
        fitting.push_back(static_cast<int>(i));
      }
      if (!fitting.empty()) return pick(random_, fitting);
    }
    throw DeadEnd{};
  }

  Clause clause(const Plan& plan) {
    Clause c;
    c.id = new_id();
    c.tense = plan.tense;
    c.verb = pick_verb(plan);
    const Verb& verb = verb_of(c);
    c.subject = plan.subject;
    if (c.subject.empty()) c.subject.push_back(noun_phrase(verb.subject, Role::subject, plan));
    c.object = plan.object;
    if (c.object.empty() && verb.object != 0) {
      c.object.push_back(noun_phrase(verb.object, Role::object, plan));
      own(c.object.front(), c.subject.front());
    }
    if (verb.frame == Frame::ditransitive) {
      Plan plain = plan;
      plain.embedded = true;
      c.recipient.push_back(noun_phrase(person, Role::recipient, plain));
      c.recipient_last =
          c.object.front().type == Type::pronoun || (c.recipient.front().type != Type::pronoun && chance(random_, 40));
    }
    if (verb.frame == Frame::copula) {
      c.predicate = plan.predicate;
      if (c.predicate.empty()) add_predicate(c);
    }
    if (!ends_in_relative(c) || verb.frame == Frame::motion) add_phrases(c, plan);
    choose_form(c, plan);
    if (plan.adverb) add_adverb(c, plan);
    if (!plan.embedded && c.front == Clause::Front::subject && !c.phrases.empty() && chance(random_, 25)) {
      const Preposition& preposition = prepositions()[static_cast<std::size_t>(c.phrases.front().preposition)];
      if (!preposition.direction && !(preposition.of & animate)) c.front = Clause::Front::phrase;
    }
    return c;
  }

  /// What came after a relative clause would seem to belong to it: "sees the dog that sleeps today".
  static bool ends_in_relative(const Clause& c) {
    const auto has = [](const NounPhrase& np) { return !np.relative.empty(); };
    return std::any_of(c.object.begin(), c.object.end(), has) ||
           std::any_of(c.recipient.begin(), c.recipient.end(), has);
  }

  static Kinds kinds_of(const NounPhrase& np) {
    Kinds kinds = 0;
    walk_noun_phrase(np, [&](const NounPhrase& part) { kinds |= part.kind(); });
    return np.type == Type::coordination ? kinds : np.kind();
  }

  void add_predicate(Clause& c) {
    const NounPhrase& subject = c.subject.front();
    c.predicate.push_back(adjective(kinds_of(subject), 0));
    if (!goes_with(c.predicate.front(), subject.adjectives)) throw DeadEnd{};
    if (!chance(random_, 12)) return;
    const int second = adjective(kinds_of(subject), 0);
    if (goes_with(second, c.predicate) && goes_with(second, subject.adjectives)) c.predicate.push_back(second);
  }

  void add_phrases(Clause& c, const Plan& plan) {
    const Frame frame = verb_of(c).frame;
    const bool motion = frame == Frame::motion;
    if (!motion && (!plan.phrase || frame == Frame::sentential)) return;
    const std::size_t percent = plan.embedded                  ? 15
                                : frame == Frame::intransitive ? 35
                                : frame == Frame::accusative   ? 18
                                                               : 8;
    if (!motion && !chance(random_, percent)) return;
    std::vector<int> fitting;
    for (std::size_t i = 0; i < prepositions().size(); ++i) {
      if (prepositions()[i].direction == motion) fitting.push_back(static_cast<int>(i));
    }
    const int preposition = pick(random_, fitting);
    Plan plain = plan;
    plain.embedded = true;
    c.phrases.push_back(
        {preposition, noun_phrase(prepositions()[static_cast<std::size_t>(preposition)].of, Role::phrase, plain)});
    // A genitive must show: not "wegen Hunde".
    NounPhrase& np = c.phrases.back().noun_phrase;
    const bool genitive = prepositions()[static_cast<std::size_t>(preposition)].governs == Case::genitive;
    if (genitive && np.determiner == Determiner::none) np.determiner = Determiner::definite;
  }

  /// Modal and negation; and no form that would leave the tense open in English ("I put it on").
  void choose_form(Clause& c, const Plan& plan) {
    const Verb& verb = verb_of(c);
    const NounPhrase& subject = c.subject.front();
    const bool simple = c.tense == Tense::present || c.tense == Tense::past;
    if (plan.modal && simple && verb.frame != Frame::copula && fits(subject, animate) && chance(random_, 13)) {
      c.modal = static_cast<int>(random_.below(modals().size()));
      if (modals()[static_cast<std::size_t>(c.modal)].en_past.empty()) c.tense = Tense::present;
    }
    const bool none = subject.determiner == Determiner::negative;
    const bool joined = !c.object.empty() && c.object.front().type == Type::coordination;
    if (plan.negation && !none && !joined && verb.frame != Frame::ditransitive && chance(random_, 13)) c.negated = true;
    const bool third = subject.agreement.person == 3 && !subject.agreement.plural;
    if (verb.en == verb.en_past && c.tense == Tense::present && c.modal < 0 && !third) c.tense = Tense::past;
  }

  void add_adverb(Clause& c, const Plan& plan) {
    if (!chance(random_, plan.embedded ? 12 : 36)) return;
    const Frame frame = verb_of(c).frame;
    std::vector<int> fitting;
    for (std::size_t i = 0; i < adverbs().size(); ++i) {
      const Adverb& adverb = adverbs()[i];
      const bool tense = adverb.tense == AdverbTense::any ||
                         (adverb.tense == AdverbTense::past && c.tense == Tense::past) ||
                         (adverb.tense == AdverbTense::present && c.tense == Tense::present) ||
                         (adverb.tense == AdverbTense::future && c.tense == Tense::future);
      bool suits = tense && frame != Frame::sentential;
      if (c.negated) suits = suits && adverb.kind == AdverbKind::time;
      if (adverb.kind == AdverbKind::frequency) suits = suits && c.modal < 0;
      if (adverb.kind == AdverbKind::manner) {
        suits = suits && (frame == Frame::intransitive || frame == Frame::motion || frame == Frame::ditransitive);
      }
      if (adverb.kind == AdverbKind::here) {
        suits = suits && c.phrases.empty() && (frame == Frame::intransitive || frame == Frame::accusative);
      }
      if (suits) fitting.push_back(static_cast<int>(i));
    }
    if (fitting.empty()) return;
    c.adverb = pick(random_, fitting);
    const AdverbKind kind = adverbs()[static_cast<std::size_t>(c.adverb)].kind;
    const bool may_front = !plan.embedded && (kind == AdverbKind::time || kind == AdverbKind::here);
    if (may_front && chance(random_, 45)) {
      c.front = Clause::Front::adverb;
    } else if (ends_in_relative(c) && kind != AdverbKind::frequency) {
      c.adverb = -1;
    }
  }

  Tense any_tense() {
    static const std::vector<Tense> tenses = {Tense::present, Tense::past, Tense::perfect, Tense::future};
    return tenses[weighted(random_, {42, 30, 14, 14})];
  }

  Utterance one(Clause c) {
    Utterance u;
    u.id = new_id();
    u.clauses.push_back(std::move(c));
    return u;
  }

  // Kinds of lines.

  Utterance plain() {
    Plan plan;
    plan.tense = any_tense();
    return one(clause(plan));
  }

  Utterance question() {
    Plan plan;
    plan.tense = any_tense();
    plan.negation = false;
    Clause c = clause(plan);
    if (c.subject.front().determiner == Determiner::negative) throw DeadEnd{};
    c.question = true;
    keep_order(c, ends_in_relative(c));
    return one(c);
  }

  /// Nothing in front of the subject; `relative`: what the adverb would then follow ends in a relative clause.
  static void keep_order(Clause& c, bool relative) {
    c.front = Clause::Front::subject;
    const bool last = c.adverb >= 0 && adverbs()[static_cast<std::size_t>(c.adverb)].kind != AdverbKind::frequency;
    if (relative && last) c.adverb = -1;
  }

  /// English passive, German object first. Half of them are drawn such that case does not show which is the subject.
  Utterance passive() {
    Plan plan;
    plan.tense = any_tense();
    plan.frames = {Frame::accusative};
    plan.modal = plan.negation = false;
    Clause c = clause(plan);
    const NounPhrase &subject = c.subject.front(), &object = c.object.front();
    if (subject.type == Type::pronoun || object.type == Type::pronoun || object.antecedent != 0 ||
        subject.determiner == Determiner::negative || !verb_of(c).en_preposition.empty()) {
      throw DeadEnd{};
    }
    const auto unmarked = [](const NounPhrase& np) {
      return np.type == Type::name || np.agreement.plural || np.agreement.gender != Gender::masculine;
    };
    const bool open = unmarked(subject) && unmarked(object) && subject.agreement.plural == object.agreement.plural;
    if (!open && chance(random_, 55)) throw DeadEnd{};
    c.object_first = true;
    keep_order(c, !subject.relative.empty());
    if (!subject.relative.empty()) c.phrases.clear();
    if (c.adverb >= 0 && adverbs()[static_cast<std::size_t>(c.adverb)].kind == AdverbKind::here) c.adverb = -1;
    return one(c);
  }

  /// A second clause that speaks of something in the first.
  Clause about(const Clause& first, Tense tense, bool embedded) {
    const std::vector<NounPhrase> mentioned = mentions(first);
    std::vector<NounPhrase> candidates;
    std::vector<std::size_t> weights;
    for (const auto* list : {&first.subject, &first.object, &first.recipient}) {
      for (const NounPhrase& np : *list) add_candidate(np, candidates, weights);
    }
    for (const PrepositionalPhrase& phrase : first.phrases) add_candidate(phrase.noun_phrase, candidates, weights);
    if (candidates.empty()) throw DeadEnd{};
    const NounPhrase& antecedent = candidates[weighted(random_, weights)];
    const std::string form = english_form(antecedent);
    Kinds rivals = 0;
    for (const NounPhrase& np : mentioned) {
      const bool open_gender = !clear_gender(np) && (form == "he" || form == "she");  // "the child"
      if (np.id != antecedent.id && (english_form(np) == form || open_gender)) rivals |= np.kind();
    }

    NounPhrase pronoun;
    pronoun.id = new_id();
    pronoun.type = Type::pronoun;
    pronoun.word = antecedent.word;
    pronoun.of_name = antecedent.type == Type::name;
    pronoun.agreement = antecedent.agreement;
    pronoun.antecedent = antecedent.id;
    Plan plan;
    plan.tense = tense;
    plan.embedded = embedded;
    plan.modal = false;
    const std::size_t how = rivals != 0 ? 0 : weighted(random_, {45, 25, 30});
    if (how == 0) {
      plan.frames = {Frame::copula};
      plan.predicate = {adjective(antecedent.kind(), rivals)};
      const bool told =
          antecedent.id == first.subject.front().id && !goes_with(plan.predicate.front(), first.predicate);
      if (told || !goes_with(plan.predicate.front(), antecedent.adjectives)) throw DeadEnd{};
    }
    (how == 2 ? plan.object : plan.subject) = {pronoun};
    return clause(plan);
  }

  static void add_candidate(const NounPhrase& np, std::vector<NounPhrase>& candidates,
                            std::vector<std::size_t>& weights) {
    const bool named = np.type == Type::noun || np.type == Type::name;
    if (!named || np.determiner == Determiner::negative || !clear_gender(np)) return;
    candidates.push_back(np);
    weights.push_back(english_form(np) == "it" ? 5 : 2);
  }

  static std::string english_form(const NounPhrase& np) {
    return english::personal_pronoun(true, np.agreement, np.kind());
  }

  /// Everything in the clause that a third-person pronoun could stand for, an owner's name included.
  static std::vector<NounPhrase> mentions(const Clause& first) {
    std::vector<NounPhrase> out;
    walk_clauses(first, [&](const Clause& c) {
      walk_phrases(c, [&](const NounPhrase& np) {
        if (np.type != Type::gap && np.agreement.person == 3) out.push_back(np);
        if (np.determiner == Determiner::owner) {
          NounPhrase owner;
          owner.type = Type::name;
          owner.word = np.owner_name;
          owner.agreement.gender = names()[static_cast<std::size_t>(np.owner_name)].gender;
          out.push_back(owner);
        }
      });
    });
    return out;
  }

  Clause second(const Clause& first, Tense tense, std::size_t percent_pronoun) {
    if (chance(random_, percent_pronoun)) return about(first, tense, true);
    Plan plan;
    plan.tense = tense;
    plan.embedded = true;
    plan.modal = false;
    return clause(plan);
  }

  /// With a subordinate clause before or after; what comes second may have the pronoun.
  Utterance joined() {
    const int subordinator = static_cast<int>(random_.below(subordinators().size()));
    const std::string& opening = subordinators()[static_cast<std::size_t>(subordinator)].en;
    const bool before = chance(random_, 28);
    Plan plan;
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    plan.embedded = before;
    plan.modal = !before;
    Tense tense = plan.tense;
    if (opening == "if") {
      plan.tense = tense = Tense::present;
      if (chance(random_, 40)) (before ? tense : plan.tense) = Tense::future;
    }
    Clause first = clause(plan);
    Clause other = second(first, tense, 75);
    Clause& main = before ? other : first;
    main.subordinator = subordinator;
    if (before) main.front = Clause::Front::subordinate;
    main.subordinate.push_back(before ? first : other);
    return one(main);
  }

  Utterance with_complement() {
    Plan plan;
    plan.frames = {Frame::sentential};
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    plan.embedded = true;
    plan.modal = false;
    Clause c = clause(plan);
    c.complement.push_back(second(c, plan.tense, 40));
    return one(c);
  }

  Utterance two_sentences() {
    Plan plan;
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    Clause first = clause(plan);
    Clause other = about(first, plan.tense, true);
    Utterance u = one(first);
    u.join = Utterance::Join::new_sentence;
    u.clauses.push_back(other);
    return u;
  }

  Utterance coordinated() {
    Plan plan;
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    plan.embedded = true;
    Clause first = clause(plan);
    Clause other = second(first, plan.tense, 50);
    Utterance u = one(first);
    u.join = chance(random_, 60) ? Utterance::Join::conjunction_and : Utterance::Join::conjunction_but;
    u.clauses.push_back(other);
    return u;
  }

  Utterance shared() {
    Plan plan;
    plan.tense = chance(random_, 60) ? Tense::present : Tense::past;
    plan.frames = {Frame::intransitive, Frame::accusative, Frame::dative, Frame::prepositional};
    plan.embedded = true;
    plan.modal = plan.negation = plan.adverb = false;
    Clause first = clause(plan);
    plan.subject = first.subject;
    Clause other = clause(plan);
    if (other.verb == first.verb || other.tense != first.tense) throw DeadEnd{};
    other.subject.clear();
    first.shared.push_back(other);
    return one(first);
  }
};

}  // namespace

std::optional<Utterance> sample(Random& random) {
  try {
    return Sampler(random).utterance();
  } catch (const DeadEnd&) {
    return std::nullopt;
  }
}

}  // namespace headlab::grammar
