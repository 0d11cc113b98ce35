#pragma once

#include "modules/model/model.h"

namespace headlab {

/// What a model costs at given lengths, counted from its shapes as they are now (removed heads are gone).
struct ModelCost {
  int64_t parameters = 0;      // tied ones once
  int64_t flops = 0;           // of one forward pass over one text (or pair): products of matrices, a multiply-add is 2
  double flops_per_token = 0;  // the same over the target's tokens (where there is one text, its tokens)
  int64_t cache_per_target = 0;  // numbers that generating keeps for each token of the target
  int64_t cache_per_source = 0;  // and for each token of the source, as a cross-attention's keys and values
};

/// For a source of S tokens and a target of T; a model of one text has no source, and S is ignored. Attention is
/// counted by the pairs that its masks leave: T (T + 1) / 2 a causal head, and a window's share where there is one.
/// Throws UsageError for lengths below 1.
ModelCost cost(const Model& model, int64_t S, int64_t T);

}  // namespace headlab
