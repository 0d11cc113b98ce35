#include "src/heads/score/confidence.h"

#include "modules/attention/attention.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/task/token_loss.h"

namespace headlab {
namespace {

/// Sums, over the tokens of a batch that count, each head's largest weight.
struct LargestWeights : Tap {
  Tensor source_BS, target_BT;  // bool: tokens that count
  std::map<Site, Tensor> sum_H;
  std::map<Site, double> tokens;

  bool wants(At at, Site) const override { return at == At::weights; }
  Tensor see(At, Site site, Tensor weights_BHTS, const AttentionCall*) override {
    const auto& queries = site.stack == Stack::enc_self ? source_BS : target_BT;
    const auto& keys = site.stack == Stack::dec_self ? target_BT : source_BS;
    const auto kept = weights_BHTS.to(torch::kFloat64) * keys.unsqueeze(1).unsqueeze(1);
    const auto largest_BHT = std::get<0>(kept.max(-1)) * queries.unsqueeze(1);
    const auto sum = largest_BHT.sum({0, 2});
    sum_H[site] = sum_H.count(site) ? sum_H[site] + sum : sum;
    tokens[site] += queries.sum().item<double>();
    return weights_BHTS;
  }
};

/// bool, like `ids`: no padding and no end of text; undefined where there is no such text.
Tensor counting(const Tensor& ids, const Tensor& mask, int64_t eos) {
  if (!ids.defined()) return {};
  const auto words = ids != eos;
  return mask.defined() ? words.logical_and(mask) : words;
}

}  // namespace

void ConfidenceOptions::describe(Fields& fields) {
  fields.add("split", split, "the part of the data").one_of({"train", "valid", "test"});
  fields.add("limit", limit, "the first examples alone").at_least(0).unit("examples").means("0: all");
  fields.add("max_tokens", max_tokens, "tokens of a batch, padding included").at_least(1).unit("tokens");
}

HeadScores ConfidenceScorer::score(Model& model, const Task& task, uint64_t) {
  for (const auto& [site, mixer] : model.mixers())
    if (const auto* attention = dynamic_cast<const Attention*>(mixer); attention && attention->routes())
      throw UsageError("confidence: " + to_string(site) + " routes tokens to heads, so that a head has weights of some tokens alone");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  LargestWeights seen;
  const auto source_eos = task.reads().ids.eos, target_eos = task.writes().eos;
  for (const auto& chosen : first_batches(task, options_.split, options_.limit, options_.max_tokens)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    seen.source_BS = counting(batch.inputs.source_BS, batch.inputs.source_mask_BS, source_eos);
    seen.target_BT = counting(batch.inputs.target_BT, batch.inputs.target_mask_BT, target_eos);
    if (!seen.source_BS.defined()) seen.source_BS = seen.target_BT;  // an encoder alone reads the one text
    Forward run;
    run.taps = {&seen};
    model.hidden(batch.inputs, run);
  }
  HeadScores scores;
  scores.method = "confidence";
  for (const auto& [site, mixer] : model.mixers()) {
    const auto& heads = mixer->heads();
    for (std::size_t i = 0; i < heads.size(); ++i)
      scores.heads[{site.stack, site.layer, heads[i]}] =
          seen.sum_H.at(site)[static_cast<int64_t>(i)].item<double>() / std::max(seen.tokens.at(site), 1.0);
  }
  return scores;
}

}  // namespace headlab
