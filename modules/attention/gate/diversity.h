#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// How alike heads are, summed over the tokens that count (or over the texts, for cross_correlation).
struct Likeness {
  Tensor sum, count;  // scalars; sum / count is D
  Tensor pairs_HH;    // the sum for each pair of heads, where it was asked for
};

/// D of H vectors u_BHTK (outputs, values, rows of weights), each token by itself, with c_hg = u_h.u_g / (|u_h| |u_g|):
///   cosine             mean over pairs h != g of c_hg
///   cos2               mean over pairs of c_hg^2
///   cross_correlation  mean over pairs of r_hg^2, r_hg the correlation over time: sum_t u'_ht.u'_gt divided by the
///   root of
///                      sum_t |u'_ht|^2 sum_t |u'_gt|^2, u' less its mean over the text
/// and then the mean over tokens (of r_hg^2: over texts). Identical heads have D = 1, orthogonal ones 0, and cos2 of
/// random directions K numbers wide 1/K. A vector of zeros is like none. mask_BT (bool): tokens that count; undefined:
/// all. At least as wide as float; fewer than 2 heads: undefined tensors.
Likeness likeness(const std::string& form, const Tensor& u_BHTK, const Tensor& mask_BT, bool with_pairs = false);

const std::vector<std::string>& likeness_forms();   // "cosine", ...
const std::vector<std::string>& likeness_places();  // "output", "values", "weights": of what

/// The place that a tap looks at for it, and which tokens of it count (undefined: all).
At place_of_likeness(const std::string& on);
Tensor likeness_mask(At at, const AttentionCall& call);
/// What is compared of what stands there.
Tensor likeness_vectors(At at, const Tensor& seen, const AttentionCall& call);

struct DiversityOptions : Described<DiversityOptions> {
  std::string on = "output", form = "cos2";
  double penalty = 0.1;
  void describe(Fields& fields) override;
};

/// Heads are kept apart by a loss          (2209.06096)
///   L = L_task + penalty * sum over layers of D
/// with D of heads' outputs z before the gates, of values, or of rows of weights (`on`, `form`; likeness() above). The
/// paper's formulas are not public, so what D is are options. A mean over L layers is penalty / L. The loss is added as
/// "diversity" in training alone; what the heads give is not touched. Values are those of key/value groups, so that
/// heads that share one have one. Asking for weights leaves the fused kernel. A penalty of 0 costs nothing.
class Diversity : public Gate {
 public:
  Diversity(const DiversityOptions& options, Shape) : options_(options) {}
  std::unique_ptr<Tap> observer(const AttentionCall& call, const std::vector<int64_t>& group_of) override;

 private:
  DiversityOptions options_;
};

}  // namespace headlab
