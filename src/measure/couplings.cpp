#include "src/measure/couplings.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/attention/mix/capsule_routing.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Sums over the tokens of each attention that routes. Gates are asked again for what they make of z, so that what is
/// routed here is what the attention routes.
struct Coupled : Tap {
  struct Of {
    const Attention* attention;
    const RoutedMix* mix;
    double entropy = 0, count = 0, uniform = 0;
  };
  std::map<Site, Of> of;
  Tensor source_BS, target_BT;  // bool, the tokens that are there; undefined: all

  bool wants(At at, Site site) const override { return at == At::z && of.count(site); }
  Tensor see(At, Site site, Tensor z_BHTK, const AttentionCall* call) override {
    auto& one = of.at(site);
    HeadPlan plan;
    for (const auto& gate : one.attention->gate_list()) gate->plan(plan, *call);
    auto gated = z_BHTK;
    for (const auto& gate : one.attention->gate_list()) gated = gate->weigh(gated, plan, *call);
    const auto c_BTIJ = one.mix->routed(gated).couplings_BTIJ.to(torch::kFloat64);
    const auto entropy_BT = -torch::xlogy(c_BTIJ, c_BTIJ).sum(-1).mean(-1);
    const auto& there = site.stack == Stack::enc_self ? source_BS : target_BT;
    const auto counted = there.defined() ? there.to(torch::kFloat64) : torch::ones_like(entropy_BT);
    one.entropy += (entropy_BT * counted).sum().item<double>();
    one.count += counted.sum().item<double>();
    one.uniform = std::log(static_cast<double>(c_BTIJ.size(-1)));
    return z_BHTK;
  }
};

}  // namespace

nlohmann::ordered_json CouplingsMeasure::measure(Model& model, const Task& task, uint64_t) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Coupled seen;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto* attention = dynamic_cast<const Attention*>(mixer);
    if (!attention || attention->heads().empty()) continue;
    if (const auto* mix = dynamic_cast<const RoutedMix*>(attention->named_children()["mix"].get()))
      seen.of[site] = {attention, mix};
  }
  if (seen.of.empty())
    throw UsageError("couplings: expected a model with a mix that routes, dynamic_capsules for instance");
  for (const auto& chosen : options_.batches(task)) {
    const auto inputs = task.batch(options_.split, chosen, model.device()).inputs;
    const auto read = readings_of(inputs);
    seen.source_BS = read.source_mask_BS;
    seen.target_BT = read.target_mask_BT;
    Forward run;
    run.taps = {&seen};
    model.hidden(inputs, run);
  }
  nlohmann::ordered_json result{{"attentions", nlohmann::ordered_json::object()}};
  double entropy = 0, of_uniform = 0;
  for (const auto& [site, one] : seen.of) {
    const auto mean = one.entropy / one.count,
               part = one.uniform > 0 ? mean / one.uniform : 1.0;  // one capsule: all is uniform
    result["attentions"][to_string(site)] = {{"entropy", mean}, {"of_uniform", part}};
    entropy += mean;
    of_uniform += part;
  }
  result["entropy"] = entropy / static_cast<double>(seen.of.size());
  result["of_uniform"] = of_uniform / static_cast<double>(seen.of.size());
  return result;
}

}  // namespace headlab
