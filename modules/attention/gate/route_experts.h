#pragma once

#include <algorithm>

#include "modules/attention/slots.h"

namespace headlab {

struct RouteExpertsOptions : Described<RouteExpertsOptions> {
  int64_t k = 2, shared = 0;
  std::string norm = "detached_sum";
  double balance = 0.01, z_loss = 0.001;
  void describe(Fields& fields) override;
};

/// Each token gets k experts: the first `shared` ones, always and with weight 1, and those it picks. (2210.05144,
/// section 3)
///   p = softmax(x W_g) over the experts that are not shared, W_g zero at the start; the k - shared largest are chosen
///   (shared experts have rows in W_g too, which nothing uses, so that each expert has one)
///   weight = p_i / stopgrad(sum of the chosen p)   ("detached_sum"), or p_i ("none")
///   aux losses, over real tokens alone: balance * E sum_e P_e f_e with P_e the mean of p_e over tokens and f_e the
///   share of choices that fell on e (1 where both are uniform), and z_loss * mean(logsumexp(x W_g)^2)
/// x_BTD -> plan.chosen_BTk, plan.weight_BTk.
class RouteExperts : public Gate {
 public:
  RouteExperts(const RouteExpertsOptions& options, Shape shape);
  void plan(HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("weight", 0, 1); }
  bool routes() const override { return true; }
  void outline(HeadOutline& outline) const override { outline.slots = always() + picked(); }
  int64_t flops(int64_t T) const override { return 2 * T * shape_->width * shape_->H(); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  /// How many shared experts are there, at the first positions; how many of the others a token picks.
  int64_t always() const;
  int64_t picked() const { return std::min(options_.k - options_.shared, shape_->H() - always()); }
  void add_losses(const Tensor& logits_BTE, const Tensor& p_BTE, const Tensor& chosen_BTk,
                  const AttentionCall& call) const;
  RouteExpertsOptions options_;
  Shape shape_;
  Tensor weight;  // [E, D]
};

void route_experts_rule(const RouteExpertsOptions& options, const AttentionAround& around);

}  // namespace headlab
