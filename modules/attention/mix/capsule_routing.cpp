#include "modules/attention/mix/capsule_routing.h"

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

constexpr int64_t inputs = 2, outputs = 3;  // dimensions of votes_BTIJC, and of couplings

Tensor wide(const Tensor& votes_BTIJC) { return votes_BTIJC.to(at_least_float(votes_BTIJC.scalar_type())); }

/// One vote's number each, all 0.
Tensor no_preference(const Tensor& votes_BTIJC) { return torch::zeros_like(votes_BTIJC.select(-1, 0)); }

/// sum_i weights_ij x_ijc.
Tensor over_inputs(const Tensor& weights_BTIJ, const Tensor& x_BTIJC) {
  return (weights_BTIJ.unsqueeze(-1) * x_BTIJC).sum(inputs);
}

/// C_ij / sum_i C_ij from log C, which no small C brings to 0 / 0.
Tensor shares(const Tensor& log_couplings_BTIJ) { return log_couplings_BTIJ.softmax(inputs); }

/// |s|^2 / (1 + |s|^2) s / |s|, whose gradient at 0 is 0.
Tensor squashed(const Tensor& s_BTJC) {
  const auto norm = torch::linalg_vector_norm(s_BTJC, 2, at::IntArrayRef{-1}, /*keepdim=*/true);
  return s_BTJC * (norm / (1 + norm.square()));
}

}  // namespace

Routed DynamicRouting::route(const Tensor& given) const {
  const auto votes = wide(given);
  auto preference = no_preference(votes);
  for (int64_t round = 1;; ++round) {
    const auto log_couplings = preference.log_softmax(outputs), couplings = log_couplings.exp();
    auto capsules = over_inputs(take_ == Take::mean ? shares(log_couplings) : couplings, votes);
    if (take_ == Take::squash) capsules = squashed(capsules);
    if (round == iterations_) return {capsules, couplings};
    preference = preference + (votes * capsules.unsqueeze(inputs)).sum(-1);
  }
}

int64_t DynamicRouting::flops(int64_t T, int64_t I, int64_t J, int64_t C) const {
  return 2 * T * I * J * C * (2 * iterations_ - 1);  // sums in each round, agreements in all but the last
}

void EmRoutingOptions::describe_routing(Fields& fields) {
  fields.add("iterations", iterations, "rounds of routing").at_least(1);
  fields.add("floor", floor, "the least variance of an output capsule").above(0);
  fields.add("temperature", temperature, "factor of what decides whether an output capsule is active").above(0);
  fields.add("rising", rising, "the temperature is multiplied by the number of the round, which counts from 1");
}

EmRouting::EmRouting(const EmRoutingOptions& options, int64_t J, double times, double constant)
    : options_(options), times_(times), constant_(constant) {
  activate = register_parameter("activate", torch::empty({J}));
  cost = register_parameter("cost", torch::empty({J}));
}

void EmRouting::draw(const std::function<at::Generator(const std::string&)>&) {
  activate.zero_();
  cost.zero_();
}

Routed EmRouting::route(const Tensor& given) const {
  const auto votes = wide(given);
  auto log_couplings = no_preference(votes).log_softmax(outputs);
  for (int64_t round = 1;; ++round) {
    const auto couplings = log_couplings.exp(), of_capsule = shares(log_couplings);
    const auto mean = over_inputs(of_capsule, votes);
    const auto away = (votes - mean.unsqueeze(inputs)).square();
    const auto variance = over_inputs(of_capsule, away).clamp_min(options_.floor);
    const auto spread = 0.5 * variance.log().sum(-1);  // [B,T,J]
    const auto lambda = options_.temperature * static_cast<double>(options_.rising ? round : 1);
    const auto active = lambda * (activate - couplings.sum(inputs) * (times_ * cost + constant_ + spread));
    if (round == options_.iterations) return {active.sigmoid().unsqueeze(-1) * mean, couplings};
    const auto log_density = -0.5 * (away / variance.unsqueeze(inputs)).sum(-1) - spread.unsqueeze(inputs);
    log_couplings = (torch::log_sigmoid(active.unsqueeze(inputs)) + log_density).log_softmax(outputs);
  }
}

int64_t EmRouting::flops(int64_t T, int64_t I, int64_t J, int64_t C) const {
  return 2 * T * I * J * C *
         (3 * options_.iterations - 1);  // means and variances in each round, densities in all but the last
}

}  // namespace headlab
