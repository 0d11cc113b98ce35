#pragma once

#include "modules/attention/weigh/weigh.h"

namespace headlab {

/// Heads that keep some tokens alone, each over these: a head's queries, keys and values are gathered, padded to the
/// longest head of the batch, and what comes out is put back; z is 0 for the other tokens. The queries are all S
/// tokens. Heads that keep more than half of a text see it whole, with a mask. What Weigh::forward gives with a mask,
/// by n^2 pairs where that takes T^2. held_BGS (bool): the tokens that a group keeps. Undefined, with nothing done:
/// the call is one that the mask serves better, since a text is short, or that must see whole texts (a recording,
/// taps of weights, dropout of weights, windows, other masks for each query, keys ahead).
Tensor attend_to_kept(Weigh& weigh, const Tensor& q_BHTK, const Tensor& k_BGSK, const Tensor& v_BGSK, const std::vector<int64_t>& group_of,
                      const Tensor& held_BGS, const HeadPlan& plan, const AttentionCall& call);

/// Texts shorter than this are masked.
inline constexpr int64_t shortest_packed = 256;

}  // namespace headlab
