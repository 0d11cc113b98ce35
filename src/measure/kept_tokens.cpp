#include "src/measure/kept_tokens.h"

#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

struct Sums {
  double cache = 0, access = 0, pairs = 0, cv2 = 0;
  Tensor load_G;
};

/// What the gates plan for each text, asked again.
struct Kept : Tap {
  std::map<Site, std::pair<const Attention*, NativeSparse*>> sparse;
  Tensor source_mask_BS, target_mask_BT;  // bool, the tokens that are there; undefined: all
  std::map<Site, Sums> sums;
  double texts = 0;

  bool wants(At at, Site site) const override { return at == At::x && sparse.count(site); }
  Tensor see(At, Site site, Tensor x_BTD, const AttentionCall* call) override {
    HeadPlan plan;
    auto* gate = sparse.at(site).second;
    gate->plan(plan, *call);
    const auto& mask = site.stack == Stack::enc_self ? source_mask_BS : target_mask_BT;
    auto& sum = sums[site];
    for (int64_t b = 0; b < x_BTD.size(0); ++b) {
      auto held_GT = plan.held_BGS[b].to(torch::kCPU).to(torch::kFloat64);
      if (mask.defined()) held_GT = held_GT.narrow(1, 0, mask[b].sum().item<int64_t>());  // padding stands on the right
      const auto G = static_cast<double>(held_GT.size(0)), T = static_cast<double>(held_GT.size(1));
      const auto n_G = held_GT.sum(1), picked_G = n_G.slice(0, gate->shared());
      sum.cache += n_G.sum().item<double>() / (G * T);
      sum.access += (held_GT.select(1, -1) * n_G).sum().item<double>() / (G * T);
      sum.pairs += call->see.causal ? (n_G * (n_G + 1)).sum().item<double>() / (G * T * (T + 1))
                                    : n_G.square().sum().item<double>() / (G * T * T);
      const auto mean = picked_G.mean();
      sum.cv2 += picked_G.size(0) > 0 ? ((picked_G - mean).square().mean() / mean.square()).item<double>() : 0;
      sum.load_G = sum.load_G.defined() ? sum.load_G + n_G / T : n_G / T;
    }
    return x_BTD;
  }
};

}  // namespace

nlohmann::ordered_json KeptTokensMeasure::measure(Model& model, const Task& task, uint64_t) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Kept kept;
  for (const auto& [site, mixer] : model.mixers())
    if (const auto* attention = dynamic_cast<const Attention*>(mixer); attention && !attention->heads().empty())
      for (const auto& gate : attention->gate_list())
        if (auto* sparse = dynamic_cast<NativeSparse*>(gate.get())) kept.sparse[site] = {attention, sparse};
  if (kept.sparse.empty()) throw UsageError("kept_tokens: expected a model whose attention has the gate native_sparse");
  for (const auto& chosen : options_.batches(task)) {
    const auto inputs = task.batch(options_.split, chosen, model.device()).inputs;
    const auto read = readings_of(inputs);
    kept.source_mask_BS = read.source_mask_BS;
    kept.target_mask_BT = read.target_mask_BT;
    Forward run;
    run.taps = {&kept};
    model.hidden(inputs, run);
    kept.texts += static_cast<double>(chosen.size());
  }
  nlohmann::ordered_json result{
      {"cache", 0.0}, {"access", 0.0}, {"pairs", 0.0}, {"cv2", 0.0}, {"attentions", nlohmann::ordered_json::object()}};
  for (const auto& [site, sum] : kept.sums) {
    auto& one = result["attentions"][to_string(site)];
    const auto tell = [&](const char* name, double of_texts) {
      one[name] = of_texts / kept.texts;
      result[name] = result[name].get<double>() + of_texts / kept.texts / static_cast<double>(kept.sums.size());
    };
    tell("cache", sum.cache);
    tell("access", sum.access);
    tell("pairs", sum.pairs);
    tell("cv2", sum.cv2);
    const auto& groups = kept.sparse.at(site).first->shape().groups;
    for (std::size_t g = 0; g < groups.size(); ++g)
      one["load"][std::to_string(groups[g])] = sum.load_G[static_cast<int64_t>(g)].item<double>() / kept.texts;
  }
  return result;
}

}  // namespace headlab
