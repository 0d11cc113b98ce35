#include "src/measure/attention.h"

#include <nlohmann/json.hpp>

#include "modules/attention/call.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/rng.h"

namespace headlab {
namespace {

/// The weights of one pass, without keys that are no tokens.
struct SeenWeights : Tap {
  std::map<Site, Tensor> of;  // [H,T,S]
  bool wants(At at, Site) const override { return at == At::weights; }
  Tensor see(At, Site site, Tensor weights_BHTS, const AttentionCall* call) override {
    const auto weights_HTS = weights_BHTS[0].slice(-1, call->ahead);
    of[site] = of.count(site) ? torch::cat({of[site], weights_HTS}, 1) : weights_HTS;  // step by step, or all at once
    return weights_BHTS;
  }
};

std::string bytes_of(const Tensor& weights_TS) {
  const auto bytes =
      (weights_TS.to(torch::kFloat32) * 255).round().clamp(0, 255).to(torch::kUInt8).to(torch::kCPU).contiguous();
  return base64_encode({static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())});
}

}  // namespace

void AttentionMeasureOptions::describe(Fields& fields) {
  fields.add("split", split, "the part of the data").one_of(split_names());
  fields.add("texts", texts, "how many texts").at_least(1).at_most(20);
  fields.add("longest", longest, "the longest text that is taken, each side by itself")
      .at_least(1)
      .at_most(64)
      .unit("tokens");
}

nlohmann::ordered_json AttentionMeasure::measure(Model& model, const Task& task, uint64_t) {
  refuse_routing(model, "attention", "weights");
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto [sources, targets] = task.lengths(options_.split);
  auto texts = nlohmann::ordered_json::array();
  nlohmann::ordered_json heads = nlohmann::ordered_json::object();
  const auto source_ends = task.reads().ids, target_ends = task.writes();
  for (std::size_t i = 0; i < targets.size() && texts.size() < static_cast<std::size_t>(options_.texts); ++i) {
    if (targets[i] > options_.longest || (!sources.empty() && sources[i] > options_.longest)) continue;
    const auto inputs = task.batch(options_.split, {static_cast<int64_t>(i)}, model.device()).inputs;
    const auto tokens = [&](const Tensor& ids_BT, const TextIds& ends, bool said) {
      auto list = nlohmann::ordered_json::array();
      const auto ids = ids_BT.to(torch::kCPU);
      for (int64_t t = 0; t < ids.size(1); ++t) {
        const auto id = ids[0][t].item<int64_t>();
        list.push_back(id == ends.bos   ? "<s>"
                       : id == ends.eos ? "</s>"
                       : said           ? task.target_token(id)
                                        : task.token(id));
      }
      return list;
    };
    nlohmann::ordered_json text;
    if (inputs.source_BS.defined()) text["source"] = tokens(inputs.source_BS, source_ends, false);
    text["target"] = tokens(inputs.target_BT, target_ends, inputs.source_BS.defined());
    SeenWeights seen;
    Forward run;
    run.taps = {&seen};
    model.hidden(inputs, run);
    for (const auto& [site, mixer] : model.mixers()) {
      if (!seen.of.count(site)) continue;  // no head is left, or it has no attention weights
      const auto& of_site = heads_with_weights(*mixer);
      for (std::size_t h = 0; h < of_site.size(); ++h)
        heads[to_string(HeadId{site.stack, site.layer, of_site[h]})]["attention"].push_back(
            bytes_of(seen.of.at(site)[static_cast<int64_t>(h)]));
    }
    texts.push_back(std::move(text));
  }
  if (texts.empty())
    throw UsageError("attention: no text of the " + options_.split + " data has at most " +
                     std::to_string(options_.longest) + " tokens a side; raise longest");
  return {{"texts", texts}, {"heads", heads}};
}

}  // namespace headlab
