#include "src/measure/experts.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// The experts that each token picks, of one batch: the gates are asked again for what they planned.
struct Picks : Tap {
  std::map<Site, const Attention*> routed;
  std::map<Site, Tensor> chosen_BTk;  // positions, on the CPU

  bool wants(At at, Site site) const override { return at == At::x && routed.count(site); }
  Tensor see(At, Site site, Tensor x_BTD, const AttentionCall* call) override {
    HeadPlan plan;
    for (const auto& gate : routed.at(site)->gate_list()) gate->plan(plan, *call);
    chosen_BTk[site] = plan.chosen_BTk.to(torch::kCPU).contiguous();
    return x_BTD;
  }
};

/// Counts of pairs of a token's class and an expert.
using Pairs = std::map<std::pair<int64_t, int64_t>, double>;

double information(const Pairs& pairs) {
  std::map<int64_t, double> of_class, of_expert;
  double all = 0, bits = 0;
  for (const auto& [pair, count] : pairs) {
    of_class[pair.first] += count;
    of_expert[pair.second] += count;
    all += count;
  }
  for (const auto& [pair, count] : pairs)
    bits += count / all * std::log2(count * all / (of_class[pair.first] * of_expert[pair.second]));
  return bits;
}

}  // namespace

void ExpertsOptions::describe(Fields& fields) {
  describe_examples(fields);
  fields.add("modulo", modulo, "the class of a token is its id modulo this").at_least(0).means("0: the id");
}

nlohmann::ordered_json ExpertsMeasure::measure(Model& model, const Task& task, uint64_t) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  Picks seen;
  for (const auto& [site, mixer] : model.mixers())
    if (const auto* attention = dynamic_cast<const Attention*>(mixer);
        attention && attention->options().project.type() == "experts" && !attention->heads().empty())
      seen.routed[site] = attention;
  if (seen.routed.empty()) throw UsageError("experts: expected a model whose attention has the gate route_experts");
  std::map<Site, Pairs> pairs;
  const auto source_ends = task.reads().ids, target_ends = task.writes();
  for (const auto& chosen : options_.batches(task)) {
    const auto batch = task.batch(options_.split, chosen, model.device());
    const auto read = readings_of(batch.inputs);
    Forward run;
    run.taps = {&seen};
    model.hidden(batch.inputs, run);
    for (const auto& [site, picks_BTk] : seen.chosen_BTk) {
      const bool encoder = site.stack == Stack::enc_self;
      const auto ids = (encoder ? read.source_BS : read.target_BT).to(torch::kCPU).contiguous();
      const auto& ends = encoder ? source_ends : target_ends;
      const auto& mask = encoder ? read.source_mask_BS : read.target_mask_BT;
      const auto there = mask.defined() ? mask.to(torch::kCPU).contiguous() : torch::ones_like(ids, torch::kBool);
      const auto k = picks_BTk.size(2);
      const auto& heads = seen.routed.at(site)->heads();
      for (int64_t n = 0; n < ids.numel(); ++n) {
        const auto id = ids.data_ptr<int64_t>()[n];
        if (!there.data_ptr<bool>()[n] || id == ends.bos || id == ends.eos) continue;
        for (int64_t i = 0; i < k; ++i)
          pairs[site][{options_.modulo > 0 ? id % options_.modulo : id,
                       heads[static_cast<std::size_t>(picks_BTk.data_ptr<int64_t>()[n * k + i])]}] += 1;
      }
    }
  }
  nlohmann::ordered_json result{{"attentions", nlohmann::ordered_json::object()}};
  double least = 1, most = 0;
  for (const auto& [site, attention] : seen.routed) {
    std::map<int64_t, double> load;
    double all = 0;
    for (const auto head : attention->heads()) load[head] = 0;
    for (const auto& [pair, count] : pairs[site]) {
      load[pair.second] += count;
      all += count;
    }
    auto& one = result["attentions"][to_string(site)];
    double smallest = 1;
    for (const auto& [head, count] : load) {
      one["load"][std::to_string(head)] = count / std::max(all, 1.0);
      smallest = std::min(smallest, count / std::max(all, 1.0));
    }
    one["least_load"] = smallest;
    one["information"] = all > 0 ? information(pairs[site]) : 0.0;
    least = std::min(least, smallest);
    most = std::max(most, one["information"].get<double>());
  }
  result["least_load"] = least;
  result["information"] = most;
  return result;
}

}  // namespace headlab
