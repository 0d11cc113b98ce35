#include "src/convert/fusion_search.h"

#include <torch/optim/adam.h>

#include "modules/attention/project/fuse_groups.h"
#include "modules/tensor/torch.h"
#include "src/data/batches.h"
#include "src/task/token_loss.h"

namespace headlab {
namespace {

/// The mix of one attention's keys, or of its values, and its Lagrangian.
struct MixSearch {
  Tensor same, mix, first, state;
  MixSearch(const std::vector<int64_t>& groups, const Tensor& like)
      : same(same_fusion_group(groups, static_cast<int64_t>(groups.size())).to(like)),
        mix(torch::eye(same.size(0), same.options()).requires_grad_()),
        state(torch::zeros({2}, same.options())) {
    torch::NoGradGuard no_grad;
    first = fusion_loss(mix, same);
  }
  Tensor F() const { return fusion_loss(mix, same); }
};

struct MixTap : Tap {
  std::map<Site, std::pair<MixSearch, MixSearch>> mixes;  // of keys, of values
  bool wants(At at, Site site) const override { return (at == At::k || at == At::v) && mixes.count(site) > 0; }
  Tensor see(At at, Site site, Tensor value, const AttentionCall*) override {
    const auto& both = mixes.at(site);
    const auto& one = at == At::k ? both.first : both.second;
    return fused(value, one.mix, one.same);
  }
};

}  // namespace

void FusionSearchOptions::describe(Fields& fields) {
  fields.add("steps", steps, "updates of the short fusion that budgets by loss are taken from")
      .at_least(1)
      .unit("steps");
  fields.add("max_tokens", max_tokens, "size of its batches").at_least(1).unit("tokens");
  fields.add("learning_rate", learning_rate, "of its mixes").above(0);
  fields.add("lr_lambda", lr_lambda, "how fast its multipliers rise").at_least(0);
}

std::map<Site, FusionLeft> search_fusion(const ConversionWork& work, const std::map<Site, FusionGroups>& groups,
                                         const FusionSearchOptions& options) {
  const Mode evaluating(work.model, false);
  MixTap tap;
  std::vector<Tensor> learned;
  std::vector<MixSearch*> all;
  for (const auto& [site, attention] : work.attentions) {
    const auto& shape = attention->shape();
    if (shape.G() != shape.H() || !attention->options().then.items.empty())
      throw UsageError("convert: " + to_string(site) +
                       ": expected keys and values of its own for each head, and no adapters, to search budgets by "
                       "loss; convert to standard first, or choose other budgets");
    const auto like = attention->parameters().front();
    auto& [keys, values] =
        tap.mixes
            .emplace(site, std::pair{MixSearch(groups.at(site).keys, like), MixSearch(groups.at(site).values, like)})
            .first->second;
    for (auto* one : {&keys, &values}) {
      all.push_back(one);
      learned.push_back(one->mix);
    }
  }
  torch::optim::Adam adam(learned, torch::optim::AdamOptions(options.learning_rate));
  auto [sources, targets] = work.task.lengths("train");
  if (sources.empty()) sources = targets;
  BatchOptions batches;
  batches.max_tokens = options.max_tokens;
  BatchOrder order(sources, targets, batches, work.seed);
  for (int64_t step = 0; step < options.steps; ++step) {
    const auto left = 1 - static_cast<double>(step) / static_cast<double>(options.steps);
    Forward run;
    run.taps = {&tap};
    run.noise_seed = work.seed + static_cast<uint64_t>(step);
    const auto batch = work.task.batch("train", order.next(), work.model.device());
    const auto loss = token_loss(work.model, batch, 0, run);
    auto objective = loss.sum / static_cast<double>(loss.tokens);
    for (auto* one : all) objective = objective + lagrangian(one->F(), one->first * left, one->state);
    const auto gradients = torch::autograd::grad({objective}, learned);
    for (std::size_t i = 0; i < learned.size(); ++i) learned[i].mutable_grad() = gradients[i];
    adam.step();
    torch::NoGradGuard no_grad;
    for (auto* one : all) ascend(one->F(), one->first * left, one->state, options.lr_lambda);
  }
  torch::NoGradGuard no_grad;
  std::map<Site, FusionLeft> found;
  for (const auto& [site, both] : tap.mixes)
    found[site] = {both.first.F().item<double>(), both.second.F().item<double>()};
  return found;
}

}  // namespace headlab
