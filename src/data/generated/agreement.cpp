#include "src/data/generated/exercises.h"

namespace headlab {
namespace {

// Singular and plural.
const std::pair<const char*, const char*> agreement_nouns[] = {
    {"key", "keys"},       {"cabinet", "cabinets"}, {"dog", "dogs"},     {"teacher", "teachers"}, {"car", "cars"},
    {"house", "houses"},   {"tree", "trees"},       {"book", "books"},   {"girl", "girls"},       {"window", "windows"},
    {"flower", "flowers"}, {"boat", "boats"},       {"bird", "birds"},   {"garden", "gardens"},   {"song", "songs"},
    {"table", "tables"},   {"letter", "letters"},   {"horse", "horses"}, {"friend", "friends"},   {"river", "rivers"}};
const char* agreement_prepositions[] = {"near", "behind", "beside", "with"};

struct AgreementOptions : ExerciseOptions<AgreementOptions, Form::sequence> {
  int64_t nouns = 20;
  SizeRange phrases{1, 4};
  std::string attractors = "any";
  void describe(Fields& fields) override {
    fields.add("nouns", nouns, "different nouns").at_least(2).at_most(std::size(agreement_nouns));
    fields.add("phrases", phrases, "noun phrases before the verb, the subject the first");
    fields.add("attractors", attractors, "the number of the nouns after the subject: any, or opposite to the subject's")
        .one_of({"any", "opposite"});
  }
};

/// the noun (preposition the noun)* verb, as in "the keys near the cabinet are": "is" or "are" is asked, which agrees
/// with the first noun and not with those between (attractors).          (1611.01368)
class Agreement : public Exercise<AgreementOptions> {
 public:
  explicit Agreement(const AgreementOptions& options) : Exercise(options) {
    the_ = symbols_.add("the");
    verbs_[0] = symbols_.add("is");
    verbs_[1] = symbols_.add("are");
    for (const auto* word : agreement_prepositions) prepositions_.push_back(symbols_.add(word));
    for (int64_t i = 0; i < options_.nouns; ++i)
      nouns_.push_back({symbols_.add(agreement_nouns[i].first), symbols_.add(agreement_nouns[i].second)});
  }
  GeneratedExample draw(Random& random, bool test) const override {
    SequenceWriter writer;
    const bool plural = random.below(2) == 1;
    const auto phrases = options_.phrases.draw(random, test);
    for (int64_t i = 0; i < phrases; ++i) {
      if (i > 0) writer.give(prepositions_[static_cast<std::size_t>(random.below(prepositions_.size()))]);
      const auto& noun = nouns_[static_cast<std::size_t>(random.below(nouns_.size()))];
      const bool its = i == 0 ? plural : options_.attractors == "opposite" ? !plural : random.below(2) == 1;
      writer.give(the_);
      writer.give(its ? noun.second : noun.first);
    }
    writer.ask(verbs_[plural]);
    return writer.done();
  }

 private:
  int32_t the_, verbs_[2];
  std::vector<int32_t> prepositions_;
  std::vector<std::pair<int32_t, int32_t>> nouns_;
};

}  // namespace

void add_agreement(Generators& all) {
  all.entry<Agreement, AgreementOptions>("agreement", "the verb's number, with other nouns between subject and verb",
                                         "1611.01368");
}

}  // namespace headlab
