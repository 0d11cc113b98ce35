#pragma once

#include <vector>

#include "src/decode/search.h"

namespace headlab {

/// Natural logarithms of the probabilities that a model gives to texts that are there already: for each text, of each
/// of its ids after all before it, eos last where `target.eos` is not -1. In the order of the texts.
///
/// `sources` (ids without bos and eos) stand for what the encoder reads; empty: the model has one text, and reads bos
/// and the text (target.bos -1: the text's first id is read, not scored). Texts stand in batches of at most
/// `max_tokens` tokens of source and target together, padding included; without gradient. The model is to be in
/// evaluation mode. Throws ShapeError, before any is read, where one is longer than the model takes.
std::vector<std::vector<double>> score_ids(Model& model, const std::vector<std::vector<int64_t>>& sources,
                                           const std::vector<std::vector<int64_t>>& targets, const TextIds& source,
                                           const TextIds& target, int64_t max_tokens);

}  // namespace headlab
