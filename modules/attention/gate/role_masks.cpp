#include "modules/attention/gate/role_masks.h"

#include "modules/attention/rules.h"
#include "modules/base/error.h"
#include "modules/base/nearest.h"
#include "modules/tensor/torch.h"

namespace headlab {

RoleMasks::RoleMasks(const RoleMasksOptions& options, Shape shape) : shape_(std::move(shape)), roles_(options.roles) {
  if (shape_->cross)
    throw ShapeError(
        "gates.role_masks: expected a self-attention; a role says which tokens of one text see each other");
  const auto heads = static_cast<std::size_t>(shape_->original_heads);
  if (roles_.size() > heads)
    throw ShapeError("gates.role_masks: expected at most a role for each of " + std::to_string(heads) + " heads, got " +
                     std::to_string(roles_.size()));
  roles_.resize(heads);
}

void RoleMasks::plan(HeadPlan& plan, const AttentionCall& call) {
  std::vector<Tensor> masks;  // of the heads that are there; undefined: all keys
  Tensor some;
  for (auto head : shape_->heads) {
    const auto& role = roles_[static_cast<std::size_t>(head)];
    auto& mask = masks.emplace_back();
    if (role.empty()) continue;
    const auto told = call.run.side.find(role_side(role));
    if (told == call.run.side.end())
      throw UsageError(to_string(call.site) + ": nothing says which keys belong to the role " + in_quotes(role) +
                       "; expected it among task.roles, and the attention to read the text that they are of");
    mask = told->second;
    const auto T = call.x_BTD.size(1);
    if (mask.dim() != 3 || mask.size(0) != call.x_BTD.size(0) || mask.size(1) != T || mask.size(2) != T)
      throw wrong_shape(
          to_string(call.site) + ".role_masks",
          "[" + std::to_string(call.x_BTD.size(0)) + ", " + std::to_string(T) + ", " + std::to_string(T) + "]", mask);
    some = mask;
  }
  if (!some.defined()) return;
  if (call.state)
    throw UsageError(to_string(call.site) +
                     ": role_masks need the whole text at once; a model that generates reads it token by token");
  for (auto& mask : masks)
    if (!mask.defined()) mask = torch::ones_like(some);
  const auto of_roles = torch::stack(masks, 1);
  plan.allowed_BHTS = plan.allowed_BHTS.defined() ? plan.allowed_BHTS.logical_and(of_roles) : of_roles;
}

void role_masks_rule(const RoleMasksOptions& options, const AttentionAround& around) {
  if (options.roles.size() > static_cast<std::size_t>(around.options.heads))
    around.problem("roles", "expected at most a role for each of " + std::to_string(around.options.heads) +
                                " heads, got " + std::to_string(options.roles.size()));
}

}  // namespace headlab
