#pragma once

#include "src/data/generated/generator.h"

namespace headlab {

/// Each file of this folder adds its exercises, in the order of `headlab list`.
void add_rearrange(Generators& all);
void add_selective_copy(Generators& all);
void add_subset(Generators& all);
void add_lexicon(Generators& all);
void add_induction(Generators& all);
void add_recall(Generators& all);
void add_paired_recall(Generators& all);
void add_needle(Generators& all);
void add_facts(Generators& all);
void add_passages(Generators& all);
void add_offsets(Generators& all);
void add_few_shot(Generators& all);
void add_successor(Generators& all);
void add_agreement(Generators& all);
void add_plausible(Generators& all);
void add_dyck(Generators& all);
void add_markov(Generators& all);
void add_dialogue(Generators& all);
void add_refuse(Generators& all);
void add_sentiment(Generators& all);
void add_rarest(Generators& all);
void add_match(Generators& all);
void add_mixture(Generators& all);

}  // namespace headlab
