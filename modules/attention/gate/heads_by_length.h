#pragma once

#include "modules/attention/length_bins.h"
#include "modules/attention/slots.h"

namespace headlab {

struct HeadsByLengthOptions : Described<HeadsByLengthOptions>, LengthBins {
  bool rescale = true;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override { bin_rules(problems); }
};

/// The longer a text, the more heads: of one attention's H heads the first k, k by the text's length
/// (AdaptAttn, 2310.14505)
///   z_h -> (H / k) z_h for h < k, 0 for the others          (without `rescale`: z_h)
/// (The abstract gives 2, 4 or 8 heads by length; how the heads of a text are chosen and scaled is inferred.)
/// mixer/heads_by_length has an attention of its own for each length. All heads are computed, of short texts too:
/// what is saved is counted by the measure `heads_by_length`. A removed head leaves what a masked one leaves: H stays
/// the original number of heads.
///
/// In what reads a whole text, since the length must be known: throws ShapeError in a cross-attention and for more
/// heads than there are, UsageError in a causal pass.
class HeadsByLength : public Gate {
 public:
  HeadsByLength(const HeadsByLengthOptions& options, Shape shape);
  void plan(HeadPlan&, const AttentionCall& call) override { check_reads_whole(call, "gates.heads_by_length"); }
  Tensor weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("factor", 1, 1); }
  const LengthBins& bins() const { return options_; }

 private:
  HeadsByLengthOptions options_;
  Tensor factor;  // [lengths, H]
};

/// Why an attention of so many heads can't have the gate; empty: it can.
std::string heads_by_length_problem(const HeadsByLengthOptions& options, int64_t heads);

void heads_by_length_rule(const HeadsByLengthOptions& options, const AttentionAround& around);

}  // namespace headlab
