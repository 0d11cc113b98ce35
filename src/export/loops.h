#pragma once

#include <torch/csrc/jit/api/module.h>

#include "src/decode/search.h"

namespace headlab {

/// Adds the decoding of src/decode/search.h as TorchScript: `greedy` and `beam_search` around the module's `begin` and
/// `step`.
///   search(memory [B,S,D], mask [B,S], limits [B], beam, length_penalty) -> (ids [B,T], scores [B])
///   limits_of(lengths [B], max_length) -> limits [B]          as `search` says, where max_length is 0
/// The best text of each example, padded with target_pad, by the same rules: ties, limits, bound of the early stop. The
/// module must have the attributes target_pad, target_bos, target_eos, max_length and the methods
///   begin(ids [B,T], memory, mask) -> (logits [B,V], caches)      and      step(ids [B,1], length, mask, caches) ->
///   the same.
void define_search(torch::jit::Module& module, const SearchOptions& search);

/// The last arguments of a method that searches, with the options' values: "beam: int = 4, ...".
std::string search_arguments(const SearchOptions& search);

}  // namespace headlab
