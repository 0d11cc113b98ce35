#include "src/heads/score/dynamic_importance.h"

#include "modules/attention/attention.h"
#include "modules/attention/gate/dynamic_importance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

bool has_importances(const Attention& attention) {
  for (const auto& gate : attention.gate_list())
    if (dynamic_cast<const DynamicImportance*>(gate.get())) return true;
  return false;
}

/// Sums over the real tokens of each pass; the gates are asked again, in their order, for what they made of z.
struct Importances : Tap {
  std::map<Site, const Attention*> attentions;
  std::map<Site, Tensor> importance_H, kl_H;
  std::map<Site, double> tokens;

  bool wants(At at, Site site) const override { return at == At::z && attentions.count(site); }
  Tensor see(At, Site site, Tensor z_BHTK, const AttentionCall* call) override {
    HeadPlan plan;
    const auto& gates = attentions.at(site)->gate_list();
    for (const auto& gate : gates) gate->plan(plan, *call);
    auto z = z_BHTK;
    for (const auto& gate : gates) {
      if (const auto* its = dynamic_cast<const DynamicImportance*>(gate.get()))
        add(site, its->importances(z, call->x_BTD), call->see.query_mask_BT);
      z = gate->weigh(z, plan, *call);
    }
    return z_BHTK;
  }

 private:
  void add(Site site, const Tensor& importance_BHT, const Tensor& real_BT) {
    const auto a_BHT = importance_BHT.to(torch::kCPU, torch::kFloat64);
    const auto all_BT = torch::ones_like(a_BHT.select(1, 0));
    const auto real_B1T = (real_BT.defined() ? real_BT.to(all_BT.options()) : all_BT).unsqueeze(1);
    const auto kl_BHT = torch::xlogy(a_BHT, a_BHT * static_cast<double>(a_BHT.size(1)));
    const auto sum = [&](const Tensor& of_BHT, Tensor& into_H) {
      const auto more = (of_BHT * real_B1T).sum({0, 2});
      into_H = into_H.defined() ? into_H + more : more;
    };
    sum(a_BHT, importance_H[site]);
    sum(kl_BHT, kl_H[site]);
    tokens[site] += real_B1T.sum().item<double>();
  }
};

std::vector<double> numbers(const Tensor& x_H) {
  return {x_H.data_ptr<double>(), x_H.data_ptr<double>() + x_H.numel()};
}

}  // namespace

std::map<Site, MeanImportances> mean_importances(Model& model, const Task& task, const Examples& examples,
                                                 const std::string& who, bool some_may_lack) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Importances seen;
  for (const auto& [site, mixer] : model.mixers()) {
    if (mixer->heads().empty()) continue;
    const auto* attention = dynamic_cast<const Attention*>(mixer);
    if (attention && has_importances(*attention))
      seen.attentions[site] = attention;
    else if (!some_may_lack)
      throw UsageError(who + ": " + to_string(site) + " has no gate \"dynamic_importance\" that could be asked");
  }
  if (some_may_lack && seen.attentions.empty())
    throw UsageError(who + ": expected a model of which an attention has the gate dynamic_importance");
  for (const auto& chosen : examples.batches(task)) {
    Forward run;
    run.taps = {&seen};
    model.hidden(task.batch(examples.split, chosen, model.device()).inputs, run);
  }
  std::map<Site, MeanImportances> means;
  for (const auto& [site, sum_H] : seen.importance_H) {
    const auto tokens = std::max(seen.tokens.at(site), 1.0);
    means[site] = {numbers((sum_H / tokens).contiguous()), numbers((seen.kl_H.at(site) / tokens).contiguous()),
                   seen.tokens.at(site)};
  }
  return means;
}

HeadScores DynamicImportanceScorer::score(Model& model, const Task& task, uint64_t) {
  HeadScores scores;
  scores.method = "dynamic_importance";
  const auto means = mean_importances(model, task, options_, "dynamic_importance");
  for (const auto& [site, mixer] : model.mixers())
    for (std::size_t i = 0; i < mixer->heads().size(); ++i)
      scores.heads[{site.stack, site.layer, mixer->heads()[i]}] = means.at(site).importance_H[i];
  return scores;
}

}  // namespace headlab
