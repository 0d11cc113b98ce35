#pragma once

#include "src/heads/passes.h"
#include "src/heads/scorer.h"

namespace headlab {

struct WandaOptions : Described<WandaOptions>, Examples {
  WandaOptions() : Examples{"train", 128} {}
  void describe(Fields& fields) override;
};

/// How large a head's part of the output's matrix is, each weight by what comes in at it:
///   S_h = sum over the columns i of head h of ||z_i||_2 sum_d |W_O,di|          (2306.11695, eq. 1, summed over a
///   head's weights)
/// ||z_i||_2 is taken over all tokens of the examples, without padding, of what enters the matrix: after gates. It
/// grows with the number of tokens, for all heads of a stack alike. No gradient is needed. In evaluation mode. Throws
/// UsageError where tokens are routed to heads, and for an attention that has no such matrix.
class WandaScorer : public Scorer {
 public:
  explicit WandaScorer(const WandaOptions& options) : options_(options) {}
  HeadScores score(Model& model, const Task& task, uint64_t seed) override;

 private:
  WandaOptions options_;
};

}  // namespace headlab
