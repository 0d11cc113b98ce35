#pragma once

#include "modules/attention/mix/capsule_routing.h"

namespace headlab {

struct AgreementOptions {
  std::optional<int64_t> capsules;
  std::string input = "tanh";
  bool bias = true;
  void describe_agreement(Fields& fields);
};

/// y is the concatenation of J output capsules of width D/J on which I = heads input capsules agree. (1904.03100,
/// section 3)
///   Omega_i = f_i([z_1; ...; z_H]), f_i(z) = act(z F_i + b_i)        F_i [HK_v, K_v]
///   V_ij = Omega_i W_ij                                              W_ij [K_v, D/J]
///   y = [v_1; ...; v_J], the output capsules of the routing of V
/// z_BHTK -> y_BTD. Without heads y is what the biases b_i alone give. An input capsule is made from all heads, not one
/// head's: a removed head takes its rows of each F_i with it, and all input capsules stay, which is what a head of
/// zeros leaves too.
class Agreement : public RoutedMix {
 public:
  Agreement(const AgreementOptions& options, Shape shape, std::shared_ptr<Routing> routing);
  Tensor mix(const Tensor& z_BHTK, const HeadPlan& plan) override;
  Routed routed(const Tensor& z_BHTK) const override;
  Tensor nothing() const override;
  void axes(HeadAxes axes) const override { axes.head("input", 1, shape_->value_width); }
  int64_t flops(int64_t T, int64_t slots) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Routed routed_of(const Tensor& made_BTIK) const;
  Shape shape_;
  int64_t capsules_;
  std::string act_;
  std::shared_ptr<Routing> routing{nullptr};
  Tensor input, input_bias, votes;  // [IK_v, HK_v], [IK_v], [I, K_v, D]
};

struct DynamicAgreementOptions : Described<DynamicAgreementOptions>, AgreementOptions {
  int64_t iterations = 3;
  void describe(Fields& fields) override;
};

/// Agreement by dynamic routing to weighted means.
class DynamicAgreement : public Agreement {
 public:
  DynamicAgreement(const DynamicAgreementOptions& options, Shape shape);
};

struct EmAgreementOptions : Described<EmAgreementOptions>, AgreementOptions, EmRoutingOptions {
  void describe(Fields& fields) override;
};

/// Agreement by EM routing, in which the constant of a Gaussian's entropy counts: cost_j + sum_c (log(sigma_jc) + (1 +
/// log 2 pi) / 2). The temperature 0.1 is ours: with 1, output capsules start all but switched off.
class EmAgreement : public Agreement {
 public:
  EmAgreement(const EmAgreementOptions& options, Shape shape);
};

/// What is wrong with so many output capsules of a model of this width; empty: nothing.
std::string agreement_problem(const AgreementOptions& options, int64_t heads, int64_t width);

void agreement_rule(const AgreementOptions& options, const AttentionAround& around);

}  // namespace headlab
