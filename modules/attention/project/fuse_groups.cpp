#include "modules/attention/project/fuse_groups.h"

#include "modules/attention/rules.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void FuseGroupsOptions::describe(Fields& fields) {
  fields.add("k_map", k_map, "for each head the group that its keys become one with")
      .at_least(0)
      .means("empty: one group of all");
  fields.add("v_map", v_map, "the same of values").at_least(0).means("empty: one group of all");
  fields.add("steps", steps, "optimiser steps until the rows of a group are to be equal").at_least(1).unit("steps");
  fields.add("lr_lambda", lr_lambda, "how fast the multipliers of the loss rise").at_least(0);
}

std::vector<int64_t> fusion_groups(const std::vector<int64_t>& map, int64_t groups) {
  return map.empty() ? std::vector<int64_t>(static_cast<std::size_t>(groups), 0) : map;
}

Tensor same_fusion_group(const std::vector<int64_t>& map, int64_t groups) {
  const auto of = torch::tensor(fusion_groups(map, groups), torch::kLong);
  return of.unsqueeze(0).eq(of.unsqueeze(1)).to(torch::get_default_dtype());
}

Tensor fused(const Tensor& x_BGSK, const Tensor& mix_GG, const Tensor& same_GG) {
  const auto mix = mix_GG * same_GG;
  return relevance::linear(x_BGSK.permute({0, 2, 3, 1}), mix.t()).permute({0, 3, 1, 2}).contiguous();
}

Tensor fusion_loss(const Tensor& mix_GG, const Tensor& same_GG) {
  // The pairs of a group of n add up to n sum_i |w_i - mean|^2.
  const auto mix = mix_GG * same_GG;
  const auto size_G = same_GG.sum(0);
  const auto mean = torch::matmul(mix, same_GG / size_G);
  const auto pairs = (size_G - 1).sum() / 2;
  return ((mix - mean).square().sum(0) * size_G).sum() / pairs.clamp_min(1);
}

Tensor lagrangian(const Tensor& F, const Tensor& target, const Tensor& state) {
  const auto over = F - target;
  return state[0] * over + state[1] * over.square();
}

void ascend(const Tensor& F, const Tensor& target, Tensor state, double lr) {
  const auto over = F - target;
  state.add_(torch::stack({over, over.square()}), lr);
}

FuseGroups::FuseGroups(const FuseGroupsOptions& options, Shape shape) : options_(options), shape_(std::move(shape)) {
  const auto G = shape_->G();
  // Original groups are numbered from 0; where groups are shared all stay, or none.
  const auto same = [&](const char* name, const std::vector<int64_t>& map) {
    if (G > 0 && !map.empty() && static_cast<int64_t>(map.size()) != G)
      throw ShapeError(std::string("then.") + name + ": expected a fusion group for each of " + std::to_string(G) +
                       " key/value heads, got " + std::to_string(map.size()));
    return G > 0 ? same_fusion_group(map, G) : torch::empty({0, 0});
  };
  key_mix = register_parameter("key_mix", torch::empty({G, G}));
  value_mix = register_parameter("value_mix", torch::empty({G, G}));
  key_same = register_buffer("key_same", same("k_map", options_.k_map));
  value_same = register_buffer("value_same", same("v_map", options_.v_map));
  lambda = register_buffer("lambda", torch::zeros({2, 2}));
  first = register_buffer("first", torch::zeros({2}));
  target = register_buffer("target", torch::zeros({2}));
  steps = register_buffer("steps", torch::zeros({1}, torch::kLong));
}

void FuseGroups::draw(const std::function<at::Generator(const std::string&)>&) {
  const auto unit = torch::eye(key_mix.size(0), key_mix.options().requires_grad(false));
  key_mix.copy_(unit);
  value_mix.copy_(unit);
  lambda.zero_();
  first.copy_(torch::stack({fusion_loss(unit, key_same), fusion_loss(unit, value_same)}));
  target.copy_(first);
  steps.zero_();
}

std::vector<Tensor> FuseGroups::store(std::vector<Tensor> kv) {
  return {fused(kv[0], key_mix, key_same), fused(kv[1], value_mix, value_same)};
}

void FuseGroups::add_loss(const AttentionCall& call) {
  const auto sum = lagrangian(fusion_loss(key_mix, key_same), target[0], lambda[0]) +
                   lagrangian(fusion_loss(value_mix, value_same), target[1], lambda[1]);
  call.run.aux.push_back({"fusion", call.site, sum, torch::ones({}, sum.options().requires_grad(false))});
}

void FuseGroups::update(Site, const std::map<std::string, Tensor>&) {
  ascend(fusion_loss(key_mix, key_same), target[0], lambda[0], options_.lr_lambda);
  ascend(fusion_loss(value_mix, value_same), target[1], lambda[1], options_.lr_lambda);
  steps.add_(1);
  const auto left = (1 - steps.to(target.scalar_type()) / static_cast<double>(options_.steps)).clamp_min(0);
  target.copy_(first * left);
}

void FuseGroups::axes(HeadAxes axes) const {
  for (const auto* name : {"key_mix", "value_mix", "key_same", "value_same"})
    for (const int64_t dim : {0, 1}) axes.group(name, dim, 1);
}

int64_t FuseGroups::flops(int64_t, int64_t S) const {
  return 2 * S * shape_->G() * shape_->G() * (shape_->head_width + shape_->value_width);
}

std::pair<double, double> FuseGroups::left() const {
  const torch::NoGradGuard no_grad;
  return {fusion_loss(key_mix, key_same).item<double>(), fusion_loss(value_mix, value_same).item<double>()};
}

void fuse_groups_rule(const FuseGroupsOptions& options, const AttentionAround& around) {
  const auto count = around.key_heads();
  for (const auto& [name, map] : {std::pair{"k_map", options.k_map}, {"v_map", options.v_map}})
    if (count && !map.empty() && static_cast<int64_t>(map.size()) != *count)
      around.problem(name, "expected a fusion group for each of " + std::to_string(*count) + " key/value heads, got " +
                               std::to_string(map.size()));
}

}  // namespace headlab
