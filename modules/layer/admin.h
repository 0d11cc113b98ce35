#pragma once

#include "modules/layer/residual.h"

namespace headlab {

struct AdminOptions : Described<AdminOptions> {
  int64_t profile_batches = 1;
  void describe(Fields& fields) override {
    fields
        .add("profile_batches", profile_batches,
             "batches of the training from whose variances omega begins; taken once, before the first step")
        .at_least(0)
        .means("0: none, omega begins at ones");
  }
};

/// x_i = norm(omega_i * x_{i-1} + dropout(f_i(x_{i-1})))          (Admin, 2004.08249)
/// omega_i [D] learns. Over the sublayers i = 1, 2, ... of one chain (those of an encoder, those of a decoder) it
/// begins at
///   omega_1 = 1       omega_{i+1}^2 = Var(omega_i x_{i-1}) + Var f_i(x_{i-1})       Var: over all numbers of a batch
/// A norm makes the variance of x about 1, so omega_i is about as large as x would have become without norms: a
/// sublayer deep in the stack adds as small a part as it would there.
///
/// A pass under begin_profile() takes omega_i by that recursion in place of the parameters, and leaves what it came to
/// in Forward::stats; apply_profile() then sets them. Both are done once, before a training's first step
/// (src/train/profile.h).
class Admin : public Residual {
 public:
  explicit Admin(const AdminOptions&) {}
  Tensor join(const Tensor& x, const SublayerNorms& norms, const SublayerDropout& dropout, bool training,
              const std::function<Tensor(const Tensor&)>& f, Forward& run) const override;
  bool final_norm() const override { return false; }
  bool has_scale() const override { return true; }
};

/// Makes the pass of `run` one that profiles.
void begin_profile(Forward& run);

/// Sets the omegas that passes went by: each to the root of its squares' mean over the passes. Without gradient. Where
/// one of them is not as it was made, all stay: they have been set or have learned. Returns whether they were set.
bool apply_profile(const std::vector<Forward>& passes);

}  // namespace headlab
