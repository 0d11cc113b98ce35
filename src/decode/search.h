#pragma once

#include <string>
#include <vector>

#include "modules/model/model.h"

namespace headlab {

/// The ids of a text that are no words of it.
struct TextIds {
  int64_t pad = 0, bos = 2, eos = 3, unk = 1;
};

/// How an output is found: the most probable one is looked for, or one is drawn. The defaults are those of 1706.03762,
/// section 6.1.
struct SearchOptions : Described<SearchOptions> {
  int64_t beam = 4;
  double length_penalty = 0.6;
  double temperature = 0;  // 0: nothing is drawn
  int64_t top_k = 0;
  double top_p = 1;
  int64_t seed = 1;
  std::string prefix;
  int64_t n_best = 1;
  int64_t max_length = 0;
  double max_length_factor = 1;
  int64_t max_length_extra = 50;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;

  /// The most tokens before eos for a source of `source_length` tokens: max_length, or else factor * source_length +
  /// extra; never more than `model_limit`.
  int64_t limit(int64_t source_length, int64_t model_limit) const;
  bool draws() const { return temperature > 0; }
};

/// A finished output.
struct Hypothesis {
  std::vector<int64_t> ids;    // without bos and eos
  double log_probability = 0;  // of all ids and eos, in nats
  double score = 0;            // log_probability / length_divisor(ids.size() + 1)
};

/// ((5 + length) / 6)^alpha          (1609.08144, eq. 14); `length` counts eos.
double length_divisor(int64_t length, double alpha);

/// Hypotheses of one example, the best first; where they are drawn, the first drawn first.
using Hypotheses = std::vector<Hypothesis>;

/// Finds outputs for each example of the batch.
///
/// Sampling, where temperature is above 0: n_best texts are drawn token by token (src/decode/sampling.h), and come in
/// the order they were drawn. Text n of an example is drawn with a generator of its own, made from the seed, run.rows_B
/// of the example (without it, its place in the batch) and n: it does not depend on the rest of the batch, nor on
/// n_best. The probabilities reported are the model's own, at temperature 1 and before anything is cut off. pad and bos
/// are never drawn; an output that reaches its limit ends as below. `beam` counts for nothing.
///
/// Otherwise beam search: each step the `beam` most probable extensions of an example's live hypotheses are kept; those
/// that end in eos are finished, the others live on. An example ends when none is live, or when no live one can still
/// beat the n_best finished ones: log-probabilities only fall, so that log_probability / length_divisor(limit + 1)
/// bounds all that may come. The best hypothesis therefore does not depend on n_best. With beam 1 this is greedy
/// search. A hypothesis that reaches its limit can only end: its eos counts with its own probability. pad and bos are
/// never written; the probabilities of the others stay as the model gives them. Equal scores: the earlier finished,
/// then the better parent, then the lower id, comes first.
///
/// Rows of examples that have ended leave the batch; `run.rows_B` always says which example a row belongs to (as an
/// index into what run.rows_B held before, where it was set). The model runs in eval mode without gradients; its modes
/// and run.rows_B are given back.
///
/// `batch`: a source, or for a decoder nothing. batch.target_BT, where it is there, is a beginning [B,T] without
/// padding that every output of its row goes on from; it is not part of the ids, and not of the score. (`prefix` is
/// text: whoever has the tokenizer makes such a beginning of it.) ids.bos < 0: nothing is read before the beginning,
/// which must then be there. ids.eos < 0: texts end at their limit alone; beam search can't do that and throws
/// UsageError. Returns 1 to n_best hypotheses for each example, fewer where the beam ended with fewer. Throws
/// ShapeError where a text is longer than the model takes, and Error where the model gives NaN.
std::vector<Hypotheses> search(Model& model, const Batch& batch, const TextIds& ids, const SearchOptions& options,
                               Forward& run);

/// The same over any stepper. `first_BT`: what it reads first, bos included; `limits`: of each example, see
/// SearchOptions::limit. Does not change modes.
std::vector<Hypotheses> search(Stepper& stepper, const Tensor& first_BT, const std::vector<int64_t>& limits,
                               const TextIds& ids, const SearchOptions& options, Forward& run);

}  // namespace headlab
