#pragma once

#include <functional>
#include <map>

#include "src/decode/search.h"

namespace headlab {

using SideOf = std::function<std::map<std::string, Tensor>(const std::vector<int64_t>& sources)>;

/// Outputs for many sources, in the order of the sources.
///
/// `sources` are ids without bos and eos; the model reads each followed by the source text's eos, as in training.
/// Sources are sorted by length and cut into batches of at most `max_tokens` source tokens, padding included; a source
/// that is longer stands alone. run.scale may be [B,L,H] with one B for each source: run.rows_B is kept, and what is
/// drawn for a source (SearchOptions::temperature) depends on it: on its place among the sources where none was set. A
/// source without tokens is read as eos alone. `side_of`: what the data tells of some of the sources, by their places
/// (Batch::side). Every output goes on from `prefix`, target ids without bos, which are no part of its ids. Throws
/// ShapeError, before any other source is read, where one is longer than the model takes.
std::vector<Hypotheses> translate_ids(Model& model, const std::vector<std::vector<int64_t>>& sources,
                                      const TextIds& source, const TextIds& target, const SearchOptions& options,
                                      int64_t max_tokens, Forward& run, const std::vector<int64_t>& prefix = {},
                                      const SideOf& side_of = {});

}  // namespace headlab
