#include "modules/attention/gate/route_experts.h"

#include <algorithm>

#include "modules/attention/project/experts.h"
#include "modules/attention/rules.h"
#include "modules/tensor/torch.h"

namespace headlab {

void RouteExpertsOptions::describe(Fields& fields) {
  fields.add("k", k, "experts that each token gets").at_least(1);
  fields.add("shared", shared, "the first so many experts are among each token's k, always").at_least(0);
  fields.add("norm", norm, "a chosen expert's weight: its probability, divided by the sum over the chosen or not")
      .one_of({"detached_sum", "none"});
  fields.add("balance", balance, "weight of the load-balance loss").at_least(0);
  fields.add("z_loss", z_loss, "weight of the squared log-partition of the router").at_least(0);
}

RouteExperts::RouteExperts(const RouteExpertsOptions& options, Shape shape)
    : options_(options), shape_(std::move(shape)) {
  if (options_.k > shape_->original_heads)
    throw ShapeError("gates.route_experts.k: expected at most the number of heads (" +
                     std::to_string(shape_->original_heads) + "), got " + std::to_string(options_.k));
  if (options_.shared >= options_.k)
    throw ShapeError("gates.route_experts.shared: expected less than k (" + std::to_string(options_.k) + "), got " +
                     std::to_string(options_.shared));
  weight = register_parameter("weight", torch::empty({shape_->H(), shape_->width}));
}

void RouteExperts::draw(const std::function<at::Generator(const std::string&)>&) { weight.zero_(); }

int64_t RouteExperts::always() const {
  return std::count_if(shape_->heads.begin(), shape_->heads.end(),
                       [&](int64_t head) { return head < options_.shared; });
}

void RouteExperts::plan(HeadPlan& plan, const AttentionCall& call) {
  const auto first = always(), k = picked();  // fewer experts than asked for may be left
  auto logits = torch::matmul(call.x_BTD, weight.t());
  if (!recording()) logits = logits.to(weight.scalar_type());  // products may be narrower; choices and losses are not
  logits = logits.narrow(-1, first, shape_->H() - first);
  const auto p = torch::softmax(logits, -1);
  auto [value, chosen] = torch::topk(p, k, -1);
  plan.chosen_BTk = chosen;
  plan.weight_BTk = options_.norm == "none" ? value : value / value.sum(-1, /*keepdim=*/true).detach();
  if (first > 0) {
    const auto ones = torch::ones_like(call.x_BTD.detach().narrow(-1, 0, 1)).expand({-1, -1, first});
    plan.weight_BTk = torch::cat({ones.to(plan.weight_BTk.scalar_type()), plan.weight_BTk}, -1);
    plan.chosen_BTk = torch::cat({ones.to(torch::kLong).cumsum(-1) - 1, chosen + first}, -1);
  }
  if (is_training() && k > 0) add_losses(logits, p, chosen, call);
}

void RouteExperts::add_losses(const Tensor& logits_BTE, const Tensor& p_BTE, const Tensor& chosen_BTk,
                              const AttentionCall& call) const {
  auto real_BT = torch::ones_like(logits_BTE.select(-1, 0));
  if (call.see.query_mask_BT.defined()) real_BT = call.see.query_mask_BT.to(real_BT.scalar_type());
  const auto tokens = real_BT.sum().clamp_min(1);
  const auto E = shape_->H() - always();
  const auto mean_p_E = (p_BTE * real_BT.unsqueeze(-1)).sum({0, 1}) / tokens;
  const auto picks_E = torch::zeros({E}, p_BTE.options())
                           .index_add(0, chosen_BTk.flatten(), real_BT.unsqueeze(-1).expand_as(chosen_BTk).flatten());
  const auto share_E = picks_E / (tokens * chosen_BTk.size(-1));
  const auto balance = static_cast<double>(E) * (mean_p_E * share_E.detach()).sum();
  call.run.aux.push_back({"balance", call.site, options_.balance * balance * tokens, tokens});
  const auto z = (logits_BTE.logsumexp(-1).square() * real_BT).sum();
  call.run.aux.push_back({"router_z", call.site, options_.z_loss * z, tokens});
}

void route_experts_rule(const RouteExpertsOptions& options, const AttentionAround& around) {
  if (options.shared >= options.k)
    around.problem("shared",
                   "expected less than k (" + std::to_string(options.k) + "), got " + std::to_string(options.shared));
  if (options.k > around.options.heads)
    around.problem("k", "expected at most the number of heads (" + std::to_string(around.options.heads) + "), got " +
                            std::to_string(options.k));
  const auto refuse = [&](const std::string& field, const std::string& type, const Traits& traits) {
    if (traits.needs_heads)
      around.beside(
          field, type + " can't go with routed experts: it has parameters for each head, and a token's heads differ");
  };
  const auto &position = around.options.position.type(), &score = around.options.weigh.score.type();
  refuse("position", position, positions().traits(position));
  refuse("weigh.score", score, scores().traits(score));
  experts_rule(options, around);
}

}  // namespace headlab
