#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/grammar/syntax.h"

namespace headlab::grammar {

/// The pairs of words that stand in a relation in an utterance, sorted, each once: "adjective old dog" (attributive or
/// after "be"), "subject dog sleep", "object see dog", "recipient give woman". A relative pronoun counts as the noun it
/// stands for; names and personal pronouns do not count.
std::vector<std::string> combinations(const Utterance& utterance);

/// Whether a pair is kept out of training: `percent` of all pairs, by a hash of their text, so that it depends neither
/// on the seed nor on the platform.
bool is_held_out(const std::string& combination, int64_t percent);

/// Every pair that the lexicon allows, sorted.
std::vector<std::string> possible_combinations();

}  // namespace headlab::grammar
