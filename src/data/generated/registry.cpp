#include "src/data/generated/exercises.h"

namespace headlab {

const Generators& generators() {
  static const Generators registry = [] {
    Generators all("exercise", "small data of a known rule, written by a program");
    for (auto* add : {add_rearrange,     add_selective_copy, add_subset,    add_lexicon,  add_induction, add_recall,
                      add_paired_recall, add_needle,         add_facts,     add_passages, add_offsets,   add_few_shot,
                      add_successor,     add_agreement,      add_plausible, add_dyck,     add_markov,    add_dialogue,
                      add_refuse,        add_sentiment,      add_rarest,    add_match,    add_mixture})
      add(all);
    return all;
  }();
  return registry;
}
const Catalogue& generator_catalogue() { return generators().catalogue(); }

}  // namespace headlab
