#pragma once

#include <algorithm>

#include "modules/attention/slots.h"

namespace headlab {

struct RouteExpertsOptions : Described<RouteExpertsOptions> {
  int64_t k = 2;
  std::string norm = "detached_sum";
  double balance = 0.01, z_loss = 0.001;
  void describe(Fields& fields) override;
};

/// Each token picks its k experts.          (2210.05144, section 3)
///   p = softmax(x W_g), W_g zero at the start; the k largest are chosen
///   weight = p_i / stopgrad(sum of the chosen p)   ("detached_sum"), or p_i ("none")
///   aux losses, over real tokens alone: balance * E sum_e P_e f_e with P_e the mean of p_e over tokens and f_e the share
///   of choices that fell on e (1 where both are uniform), and z_loss * mean(logsumexp(x W_g)^2)
/// x_BTD -> plan.chosen_BTk, plan.weight_BTk.
class RouteExperts : public Gate {
 public:
  RouteExperts(const RouteExpertsOptions& options, Shape shape);
  void plan(HeadPlan& plan, const AttentionCall& call) override;
  void axes(HeadAxes axes) const override { axes.head("weight", 0, 1); }
  bool routes() const override { return true; }
  void outline(HeadOutline& outline) const override { outline.slots = std::min(options_.k, shape_->H()); }
  int64_t flops(int64_t T) const override { return 2 * T * shape_->width * shape_->H(); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  void add_losses(const Tensor& logits_BTE, const Tensor& p_BTE, const Tensor& chosen_BTk, const AttentionCall& call) const;
  RouteExpertsOptions options_;
  Shape shape_;
  Tensor weight;  // [E, D]
};

}  // namespace headlab
