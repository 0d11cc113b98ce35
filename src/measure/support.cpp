#include "src/measure/support.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "modules/attention/call.h"
#include "modules/tensor/torch.h"
#include "src/heads/head_set.h"

namespace headlab {
namespace {

/// Sums over the queries of one attention, by head.
struct Reach : Tap {
  explicit Reach(const SupportMeasureOptions& options) : options(options) {}
  const SupportMeasureOptions& options;
  Tensor source_BS, target_BT;  // bool, the tokens that are there; undefined: all
  std::map<Site, Tensor> seen_BHT, sum_H;
  std::map<Site, double> queries;

  bool wants(At at, Site) const override { return at == At::scores || at == At::weights; }
  Tensor see(At at, Site site, Tensor value, const AttentionCall* call) override {
    if (at == At::scores) {
      seen_BHT[site] = value.gt(-std::numeric_limits<double>::infinity()).sum(-1);
      return value;
    }
    const auto mask = of_queries(site.stack == Stack::enc_self ? source_BS : target_BT, *call);
    auto counts = seen_BHT.at(site).ge(options.least);
    if (mask.defined()) counts = counts.logical_and(mask.unsqueeze(1));
    const auto reached = value.gt(options.above)
                             .sum(-1)
                             .masked_fill(counts.logical_not(), 0)
                             .to(torch::kFloat64)
                             .sum(at::IntArrayRef{0, 2});
    auto& sum = sum_H[site];
    sum = sum.defined() ? sum + reached : reached;
    queries[site] += static_cast<double>(counts.select(1, 0).sum().item<int64_t>());
    return value;
  }
};

}  // namespace

void SupportMeasureOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("above", above, "weights that count").at_least(0).below(1);
  fields.add("least", least, "queries that count see at least so many keys").at_least(1).unit("keys");
}

nlohmann::ordered_json SupportMeasure::measure(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "support", "weights");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Reach reach(options_);
  for (const auto& chosen : options_.batches(task)) {
    const auto inputs = task.batch(options_.split, chosen, model.device()).inputs;
    const auto read = readings_of(inputs);
    reach.source_BS = read.source_mask_BS;
    reach.target_BT = read.target_mask_BT;
    Forward run;
    run.taps = {&reach};
    model.hidden(inputs, run);
  }
  nlohmann::ordered_json heads = nlohmann::ordered_json::object();
  double sum = 0, most = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    if (reach.queries[site] == 0) continue;
    most = std::max(most, reach.queries[site]);
    const auto& of_site = heads_with_weights(*mixer);
    for (std::size_t h = 0; h < of_site.size(); ++h) {
      const auto mean = reach.sum_H.at(site)[static_cast<int64_t>(h)].item<double>() / reach.queries[site];
      heads[to_string(HeadId{site.stack, site.layer, of_site[h]})] = {{"support", mean}};
      sum += mean;
    }
  }
  if (heads.empty())
    throw UsageError("support: no query sees " + std::to_string(options_.least) + " keys; lower least");
  return {{"support", sum / static_cast<double>(heads.size())}, {"heads", heads}, {"queries", most}};
}

}  // namespace headlab
