#include "src/measure/tag_mass.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "modules/attention/call.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"
#include "src/task/tagging.h"

namespace headlab {
namespace {

/// Sums over the queries of all batches, by head.
struct MassTap : Tap {
  Tensor there_BT;  // bool
  Tensor tag_BT;    // long; -1: no first token of a word
  int64_t tags = 0;
  std::map<Site, std::map<int64_t, Tensor>> at_offset_H;
  std::map<Site, Tensor> on_tag_HC;

  bool wants(At at, Site) const override { return at == At::weights; }
  Tensor see(At, Site site, Tensor weights_BHTS, const AttentionCall* call) override {
    const auto of_text = weights_BHTS.slice(-1, call->ahead).to(torch::kFloat64);
    const auto a_BHTS = of_text.masked_fill(there_BT.logical_not().unsqueeze(1).unsqueeze(-1), 0);
    const auto T = a_BHTS.size(2);
    for (int64_t d = 1 - T; d < T; ++d) {
      const auto sum_H = a_BHTS.diagonal(d, 2, 3).sum({0, 2});
      auto& sum = at_offset_H[site][d];
      sum = sum.defined() ? sum + sum_H : sum_H;
    }
    const auto one_hot_BTC = torch::one_hot(tag_BT + 1, tags + 1).slice(-1, 1).to(torch::kFloat64);
    const auto sum_HC = torch::matmul(a_BHTS, one_hot_BTC.unsqueeze(1)).sum({0, 2});
    auto& sum = on_tag_HC[site];
    sum = sum.defined() ? sum + sum_HC : sum_HC;
    return weights_BHTS;
  }
};

}  // namespace

void TagMassOptions::describe(Fields& fields) { describe_examples(fields); }

nlohmann::ordered_json TagMassMeasure::measure(Model& model, const Task& task, uint64_t) {
  using Json = nlohmann::ordered_json;
  const auto* tagging = dynamic_cast<const Tagging*>(&task);
  if (!tagging) throw UsageError("tag_mass: expected the task tagging, which knows a tag for each word");
  refuse_routing(model, "tag_mass", "weights");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto& labels = tagging->labels();
  MassTap tap;
  tap.tags = labels.size();
  auto times_C = torch::zeros({tap.tags}, torch::kFloat64);
  double queries = 0;
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = tagging->collect(options_.split, chosen, model.device());
    const auto& ids_BT = batch.inputs.target_BT;
    tap.there_BT =
        batch.inputs.target_mask_BT.defined() ? batch.inputs.target_mask_BT : torch::ones_like(ids_BT, torch::kBool);
    tap.tag_BT = torch::full_like(ids_BT, -1).view(-1).index_copy(0, batch.rows_N, batch.targets_N).view_as(ids_BT);
    queries += static_cast<double>(tap.there_BT.sum().item<int64_t>());
    times_C += batch.targets_N.bincount({}, tap.tags).to(torch::kCPU, torch::kFloat64);
    Forward run;
    run.taps = {&tap};
    model.hidden(batch.inputs, run);
  }
  Json share = Json::object(), heads = Json::object();
  for (int64_t c = 0; c < tap.tags; ++c) share[labels.name(c)] = times_C[c].item<double>() / queries;
  double offsets = 0, lifts = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    if (tap.on_tag_HC.count(site) == 0) continue;
    const auto& of_site = heads_with_weights(*mixer);
    for (std::size_t h = 0; h < of_site.size(); ++h) {
      const auto position = static_cast<int64_t>(h);
      Json head{{"offset", 0}, {"offset_mass", 0.0}, {"mass", Json::object()}, {"lift", Json::object()}};
      double largest_offset = -1, largest_lift = 0;
      for (const auto& [d, sum_H] : tap.at_offset_H.at(site))
        if (const auto mass = sum_H[position].item<double>() / queries; mass > largest_offset) {
          largest_offset = mass;
          head["offset"] = d;
          head["offset_mass"] = mass;
        }
      for (int64_t c = 0; c < tap.tags; ++c) {
        const auto mass = tap.on_tag_HC.at(site)[position][c].item<double>() / queries,
                   of = share[labels.name(c)].get<double>();
        head["mass"][labels.name(c)] = mass;
        if (of == 0) continue;
        head["lift"][labels.name(c)] = mass / of;
        largest_lift = std::max(largest_lift, mass / of);
      }
      offsets += largest_offset;
      lifts += largest_lift;
      heads[to_string(HeadId{site.stack, site.layer, of_site[h]})] = head;
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(heads.size(), 1));
  return {{"heads", heads},
          {"share", share},
          {"offset_mass", offsets / count},
          {"largest_lift", lifts / count},
          {"queries", queries}};
}

}  // namespace headlab
