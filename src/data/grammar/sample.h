#pragma once

#include <optional>

#include "modules/base/random.h"
#include "src/data/grammar/syntax.h"

namespace headlab::grammar {

/// Draws what one line says. Empty where a choice led nowhere (no noun left, an unclear pronoun): draw again.
/// An English pronoun has one possible antecedent, or a predicate that fits one alone ("The dog sits under the table
/// because it is hungry."), so that the German pronoun's gender can be known.
std::optional<Utterance> sample(Random& random);

}  // namespace headlab::grammar
