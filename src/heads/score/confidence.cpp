#include "src/heads/score/confidence.h"

#include "modules/attention/call.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Sums, over the tokens of a batch that count, each head's largest weight.
struct LargestWeights : Tap {
  Tensor source_BS, target_BT;  // bool: tokens that count
  std::map<Site, Tensor> sum_H;
  std::map<Site, double> tokens;

  bool wants(At at, Site) const override { return at == At::weights; }
  Tensor see(At, Site site, Tensor weights_BHTS, const AttentionCall* call) override {
    const auto queries = of_queries(site.stack == Stack::enc_self ? source_BS : target_BT, *call);
    const auto& keys = site.stack == Stack::dec_self ? target_BT : source_BS;
    const auto kept = weights_BHTS.slice(-1, call->ahead).to(torch::kFloat64) * keys.unsqueeze(1).unsqueeze(1);
    const auto largest_BHT = std::get<0>(kept.max(-1)) * queries.unsqueeze(1);
    const auto sum = largest_BHT.sum({0, 2});
    sum_H[site] = sum_H.count(site) ? sum_H[site] + sum : sum;
    tokens[site] += queries.sum().item<double>();
    return weights_BHTS;
  }
};

/// bool, like `ids`: no padding and no end of text.
Tensor counting(const Tensor& ids, const Tensor& mask, int64_t eos) {
  const auto words = ids != eos;
  return mask.defined() ? words.logical_and(mask) : words;
}

}  // namespace

void ConfidenceOptions::describe(Fields& fields) { describe_examples(fields); }

HeadScores ConfidenceScorer::score(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "confidence", "weights");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  LargestWeights seen;
  const auto source_eos = task.reads().ids.eos, target_eos = task.writes().eos;
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    const auto read = readings_of(batch.inputs);
    seen.source_BS = counting(read.source_BS, read.source_mask_BS, source_eos);
    seen.target_BT = counting(read.target_BT, read.target_mask_BT, target_eos);
    Forward run;
    run.taps = {&seen};
    model.hidden(batch.inputs, run);
  }
  HeadScores scores;
  scores.method = "confidence";
  for (const auto& [site, mixer] : model.mixers()) {
    const auto& heads = mixer->heads();
    if (heads.size() != (seen.sum_H.count(site) ? heads_with_weights(*mixer).size() : 0))
      throw UsageError("confidence: " + to_string(site) +
                       " has heads without attention weights; choose another scorer");
    for (std::size_t i = 0; i < heads.size(); ++i)
      scores.heads[{site.stack, site.layer, heads[i]}] =
          seen.sum_H.at(site)[static_cast<int64_t>(i)].item<double>() / std::max(seen.tokens.at(site), 1.0);
  }
  return scores;
}

}  // namespace headlab
