#pragma once

#include "modules/attention/mix/capsule_routing.h"

namespace headlab {

struct CapsulesOptions {
  std::optional<int64_t> capsules, width;
  std::string merge = "add";
  bool bias = true;
  void describe_capsules(Fields& fields);
};

/// Each head is an input capsule; what J output capsules of width C find is added to the usual output. (1909.00188)
///   V_hj = z_h W_hj                                    W_hj [K_v, C]
///   y = Concat(z_1, ..., z_H) W_O + b + [v_1; ...; v_J] W_c, v the output capsules of the routing of V        W_c [JC,
///   D]
/// `merge: replace` leaves Concat(z) W_O out. z_BHTK -> y_BTD. Beside W_O and b there are H J K_v C + J C D parameters.
/// The digest of the paper leaves the sizes open: J = heads and C = K_v.
class Capsules : public RoutedMix {
 public:
  Capsules(const CapsulesOptions& options, Shape shape, std::shared_ptr<Routing> routing);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Routed routed(const Tensor& z_BHTK) const override;
  Tensor nothing() const override;
  void axes(HeadAxes axes) const override;
  int64_t flops(int64_t T, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 protected:
  /// J and C of these options.
  struct Sizes {
    int64_t capsules, width;
  };
  static Sizes sizes_of(const CapsulesOptions& options, const AttentionShape& shape);

 private:
  Shape shape_;
  Sizes sizes_;
  std::shared_ptr<Routing> routing{nullptr};
  Tensor weight, bias;   // [D, HK_v] where it is added to, [D]
  Tensor votes, output;  // [H, K_v, JC], [D, JC]
};

struct DynamicCapsulesOptions : Described<DynamicCapsulesOptions>, CapsulesOptions {
  int64_t iterations = 3;
  bool squash = true;
  void describe(Fields& fields) override;
};

/// Capsules by dynamic routing to sums, which are squashed. A head of zeros changes neither a sum nor a coupling of
/// another head.
class DynamicCapsules : public Capsules {
 public:
  DynamicCapsules(const DynamicCapsulesOptions& options, Shape shape);
};

struct EmCapsulesOptions : Described<EmCapsulesOptions>, CapsulesOptions, EmRoutingOptions {
  EmCapsulesOptions();
  void describe(Fields& fields) override;
};

/// Capsules by EM routing; the cost of capsule j is S_j sum_c (cost_j + log(s_jc) / 2).
class EmCapsules : public Capsules {
 public:
  EmCapsules(const EmCapsulesOptions& options, Shape shape);
};

}  // namespace headlab
