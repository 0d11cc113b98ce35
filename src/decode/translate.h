#pragma once

#include "src/decode/search.h"

namespace headlab {

/// Outputs for many sources, in the order of the sources.
///
/// `sources` are ids without bos and eos; the model reads each followed by the source text's eos, as in training. Sources
/// are sorted by length and cut into batches of at most `max_tokens` source tokens, padding included; a source that is
/// longer stands alone. run.scale may be [B,L,H] with one B for each source: run.rows_B is kept. A source without tokens is
/// read as eos alone.
/// Throws ShapeError, before any other source is read, where one is longer than the model takes.
std::vector<Hypotheses> translate_ids(Model& model, const std::vector<std::vector<int64_t>>& sources, const TextIds& source,
                                      const TextIds& target, const SearchOptions& options, int64_t max_tokens, Forward& run);

}  // namespace headlab
