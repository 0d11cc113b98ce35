#include "src/ablate/replacement.h"

#include <algorithm>

#include "modules/base/random.h"
#include "modules/tensor/torch.h"
#include "src/heads/scale.h"

namespace headlab {

void ReplacementOptions::describe(Fields& fields) {
  fields
      .add("with", with,
           "what stands in for an ablated head: nothing, its mean output, or its output at a token drawn at random")
      .one_of({"zero", "mean", "resample"});
  describe_examples(fields, "where means and draws are from");
}

struct Replacement::Outputs : Tap {
  std::map<Site, Tensor> of;  // [N,H,K]; of means N is 1
  Tensor source_BS, target_BT;

  bool wants(At at, Site) const override { return at == At::z; }
  Tensor see(At, Site site, Tensor z_BHTK, const AttentionCall* call) override {
    const auto mask = of_queries(site.stack == Stack::enc_self ? source_BS : target_BT, *call);
    auto z_NHK = z_BHTK.transpose(1, 2).flatten(0, 1);
    if (mask.defined()) z_NHK = z_NHK.index_select(0, mask.flatten().nonzero().squeeze(-1));
    of[site] = of.count(site) ? torch::cat({of[site], z_NHK}) : z_NHK;
    return z_BHTK;
  }
};

struct Replacement::Replaced : Tap {
  const std::map<Site, Tensor>* outputs = nullptr;
  std::map<Site, std::vector<std::pair<int64_t, int64_t>>> heads;  // position among those there, original number
  bool resample = false;
  uint64_t seed = 0;
  std::map<HeadId, uint64_t> drawn;

  bool wants(At at, Site site) const override { return at == At::z && heads.count(site); }
  Tensor see(At, Site site, Tensor z_BHTK, const AttentionCall*) override {
    const auto& all = outputs->at(site);
    auto replaced = z_BHTK.clone();
    for (const auto& [position, number] : heads.at(site)) {
      const auto of_head = all.select(1, position);  // [N,K]
      if (!resample) {
        replaced.select(1, position).copy_(of_head[0].expand_as(z_BHTK.select(1, position)));
        continue;
      }
      const HeadId head{site.stack, site.layer, number};
      const auto rows = z_BHTK.size(0) * z_BHTK.size(2);
      auto random = Random::stream(seed, {static_cast<uint64_t>(site.stack), static_cast<uint64_t>(site.layer),
                                          static_cast<uint64_t>(number), drawn[head]++});
      std::vector<int64_t> places;
      for (int64_t i = 0; i < rows; ++i)
        places.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(of_head.size(0)))));
      const auto chosen = of_head.index_select(0, torch::tensor(places, torch::kLong).to(of_head.device()));
      replaced.select(1, position).copy_(chosen.view({z_BHTK.size(0), z_BHTK.size(2), z_BHTK.size(3)}));
    }
    return replaced;
  }
};

Replacement::Replacement(const ReplacementOptions& options, Model& model, const Task& task, uint64_t seed)
    : with_(options.with),
      model_(model),
      seed_(seed),
      outputs_(std::make_unique<Outputs>()),
      replaced_(std::make_unique<Replaced>()) {
  if (with_ == "zero") return;
  refuse_routing(model, "replace", "outputs", "; use zero");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  for (const auto& chosen : options.batches(task)) {
    const auto inputs = task.batch(options.split, chosen, model.device()).inputs;
    const auto read = readings_of(inputs);
    outputs_->target_BT = read.target_mask_BT;
    outputs_->source_BS = read.source_mask_BS;
    Forward run;
    run.taps = {outputs_.get()};
    model.hidden(inputs, run);
  }
  if (with_ == "mean")  // once, not in every pass
    for (auto& [site, z_NHK] : outputs_->of) z_NHK = z_NHK.mean(0, /*keepdim=*/true);
  replaced_->outputs = &outputs_->of;
  replaced_->resample = with_ == "resample";
}

Replacement::~Replacement() = default;

Intervention Replacement::without(const HeadSet& heads) {
  if (with_ == "zero") return heads.empty() ? Intervention() : Intervention(mask_scale(model_, heads));
  const auto there = model_.heads();
  replaced_->heads.clear();
  replaced_->drawn.clear();
  replaced_->seed = seed_;
  for (const auto head : heads) {
    check_head(there, head);
    const auto& of_layer = there.at(head.stack).at(static_cast<std::size_t>(head.layer));
    const auto position = std::find(of_layer.begin(), of_layer.end(), head.head) - of_layer.begin();
    replaced_->heads[head.site()].emplace_back(position, head.head);
  }
  Intervention made;
  if (!heads.empty()) made.taps = {replaced_.get()};
  return made;
}

}  // namespace headlab
