#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// Capsules are vectors. Each of I input capsules votes for what each of J output capsules should be; a routing finds
/// the output capsules that votes agree on, and so what share of each input belongs to which output.
struct Routed {
  Tensor capsules_BTJC;
  Tensor couplings_BTIJ;  // of the last round; the sum over J is 1
};

/// votes_BTIJC -> output capsules, token by token. Gradients go through all rounds. Computes with at least 32 bits.
struct Routing : torch::nn::Module, Initialised {
  virtual Routed route(const Tensor& votes_BTIJC) const = 0;
  /// Sums over I or C of products, of T tokens.
  virtual int64_t flops(int64_t T, int64_t I, int64_t J, int64_t C) const = 0;
};

/// b_ij = 0; in each round c_i = softmax_j(b_i), v_j = f(sum_i c_ij V_ij), and, but after the last, b_ij += <V_ij, v_j>
///          (1710.09829, procedure 1)
/// `squash`: f(s) = |s|^2 / (1 + |s|^2) s / |s|; `mean`: f(s) = s / sum_i c_ij; otherwise f(s) = s.
class DynamicRouting : public Routing {
 public:
  enum class Take { sum, mean, squash };
  DynamicRouting(int64_t iterations, Take take) : iterations_(iterations), take_(take) {}
  Routed route(const Tensor& votes_BTIJC) const override;
  int64_t flops(int64_t T, int64_t I, int64_t J, int64_t C) const override;
  void draw(const std::function<at::Generator(const std::string&)>&) override {}

 private:
  int64_t iterations_;
  Take take_;
};

struct EmRoutingOptions {
  int64_t iterations = 3;
  double floor = 1e-6, temperature = 0.1;
  bool rising = false;
  void describe_routing(Fields& fields);
};

/// Output capsules are Gaussians that EM fits to the votes; R_ij = 1/J at first.
///          (Matrix capsules with EM routing, openreview HJWLfGWRb, procedure 1)
///   M: S_j = sum_i R_ij, mu_j = sum_i R_ij V_ij / S_j, s_jc = max(sum_i R_ij (V_ijc - mu_jc)^2 / S_j, floor)
///      a_j = sigmoid(lambda_t (activate_j - S_j (times cost_j + constant + sum_c log(s_jc) / 2)))
///   E: R_ij ~ a_j N(V_ij; mu_j, s_j), whose sum over j is 1, but after the last round
/// and output capsule j is a_j mu_j. lambda_t is the temperature; where it rises, of round t = 1, 2, ... times t.
/// activate and cost [J] learn, from 0; `times` and `constant` are what papers differ in.
class EmRouting : public Routing {
 public:
  EmRouting(const EmRoutingOptions& options, int64_t J, double times, double constant);
  Routed route(const Tensor& votes_BTIJC) const override;
  int64_t flops(int64_t T, int64_t I, int64_t J, int64_t C) const override;
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  EmRoutingOptions options_;
  double times_, constant_;
  Tensor activate, cost;  // [J]
};

/// A mix that routes: y is no sum over heads, since all heads decide what share of each goes where.
struct RoutedMix : Mix {
  /// What mix() routes of these outputs of heads.
  virtual Routed routed(const Tensor& z_BHTK) const = 0;
  Tensor per_head(const Tensor&) override { return {}; }
};

}  // namespace headlab
