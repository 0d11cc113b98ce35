#pragma once

#include "modules/tensor/shapes.h"

/// Connectionist temporal classification          (10.1145/1143844.1143891)
/// A path says one id at each frame; what it writes are its ids without the blank, equal ones in a row once:
///   p(symbols) = sum over the paths that write them of prod_s p(path_s | frame s)
/// Ids are those of every task over frames: 0 padding, which is the blank here, 1 unknown, 2 begin, 3 end, then
/// symbols. A path never says 1, 2 and 3.
namespace headlab {

inline constexpr int64_t ctc_blank = 0, ctc_end = 3, ctc_first_symbol = 4;

/// logits[..., V] -> log p of the blank and symbols, at least float32; of others -1e30.
Tensor ctc_log_probabilities(const Tensor& logits);

/// -log p of each text's symbols, [B]: log_p_BSV of ctc_log_probabilities, mask_BS (bool, true first; undefined: no
/// padding), symbols_BT with lengths_B (long). Of texts that no path of so few frames writes 0.
Tensor ctc_nll(const Tensor& log_p_BSV, const Tensor& mask_BS, const Tensor& symbols_BT, const Tensor& lengths_B);

/// log p(next | the symbols before), [B,T,V]: ids_BT begin with a begin, and entry t is of what follows ids 0 ... t, a
/// symbol or the end. p(end | symbols) is p(symbols) of those that begin so, so that log p of a text's symbols and end
/// sums up to that of CTC: the loss of a text is a sum over its symbols, as of models that write one after another.
/// A symbol that can't follow has -1e4; the ids 0, 1 and 2, which no text says, have -50. It looks at B T S V numbers
/// at once.
Tensor ctc_next(const Tensor& log_p_BSV, const Tensor& mask_BS, const Tensor& ids_BT);

}  // namespace headlab
