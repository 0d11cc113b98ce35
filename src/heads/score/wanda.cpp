#include "src/heads/score/wanda.h"

#include "modules/attention/attention.h"
#include "modules/attention/mix/low_rank.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Sums the squares of what enters each output matrix.
struct Inputs : Tap {
  std::map<Site, const Attention*> attentions;
  Tensor source_mask_BS, target_mask_BT;  // bool: no padding; undefined: none
  std::map<Site, Tensor> squares_HK;

  bool wants(At at, Site) const override { return at == At::z; }
  Tensor see(At, Site site, Tensor z_BHTK, const AttentionCall* call) override {
    auto entering = z_BHTK;
    for (const auto& gate : attentions.at(site)->gate_list()) entering = gate->weigh(entering, {}, *call);
    auto squares = entering.to(torch::kFloat64).square();
    const auto& mask = site.stack == Stack::enc_self ? source_mask_BS : target_mask_BT;
    if (mask.defined()) squares = squares * mask.unsqueeze(1).unsqueeze(-1);
    const auto sum = squares.sum({0, 2});
    squares_HK[site] = squares_HK.count(site) ? squares_HK[site] + sum : sum;
    return z_BHTK;
  }
};

/// W_O, [D, HK_v], float64.
Tensor output_matrix(const Attention& attention, Site site) {
  const auto parameters = attention.named_parameters();
  const auto of = [&](const std::string& name) { return parameters[name].detach().to(torch::kFloat64); };
  const auto& mix = attention.options().mix;
  if (mix.type() == "concatenate") return of("mix.weight");
  if (mix.type() == "low_rank")
    return of("mix.weight") + mix.as<LowRankMixOptions>().scale * torch::matmul(of("mix.up"), of("mix.down"));
  throw UsageError("wanda: expected the mix \"concatenate\" or \"low_rank\" in " + to_string(site) + ", got \"" +
                   mix.type() + "\"; choose another scorer");
}

}  // namespace

void WandaOptions::describe(Fields& fields) { describe_examples(fields); }

HeadScores WandaScorer::score(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "wanda", "outputs");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Inputs inputs;
  std::map<Site, Tensor> matrices;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto* attention = dynamic_cast<const Attention*>(mixer);
    if (!attention) throw UsageError("wanda: " + to_string(site) + " is no attention; it has no output's matrix");
    inputs.attentions[site] = attention;
    if (!attention->heads().empty()) matrices[site] = output_matrix(*attention, site);
  }
  for (const auto& examples : options_.batches(task)) {
    const auto batch = task.batch(options_.split, examples, model.device());
    const auto read = readings_of(batch.inputs);
    inputs.source_mask_BS = read.source_mask_BS;
    inputs.target_mask_BT = read.target_mask_BT;
    Forward run;
    run.taps = {&inputs};
    model.hidden(batch.inputs, run);
  }
  HeadScores scores;
  scores.method = "wanda";
  for (const auto& [site, matrix] : matrices) {
    const auto norms_HK = inputs.squares_HK.at(site).sqrt();
    const auto of_head = (norms_HK * matrix.abs().sum(0).view_as(norms_HK)).sum(1);
    const auto& heads = inputs.attentions.at(site)->heads();
    for (std::size_t h = 0; h < heads.size(); ++h)
      scores.heads[{site.stack, site.layer, heads[h]}] = of_head[static_cast<int64_t>(h)].item<double>();
  }
  return scores;
}

}  // namespace headlab
