#include "src/measure/frequencies.h"

#include <nlohmann/json.hpp>
#include <numbers>

#include "modules/attention/position/adarope.h"
#include "modules/mixer/attention_in.h"
#include "modules/tensor/torch.h"

namespace headlab {

nlohmann::ordered_json FrequenciesMeasure::measure(Model& model, const Task&, uint64_t) {
  const torch::NoGradGuard no_grad;
  auto heads = nlohmann::ordered_json::object();
  double spread = 0;
  int64_t attentions = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto* attention = attention_in(*mixer);
    if (!attention || attention->heads().empty()) continue;
    const auto* position = dynamic_cast<const AdaRope*>(attention->named_children()["position"].get());
    if (!position) continue;
    const auto w_HR = position->frequencies().to(torch::kCPU, torch::kFloat64).contiguous();
    const auto number = [](const Tensor& of_H, std::size_t h, double otherwise) {
      return of_H.defined() ? of_H[static_cast<int64_t>(h)].item<double>() : otherwise;
    };
    for (std::size_t h = 0; h < attention->heads().size(); ++h) {
      auto& one = heads[to_string(HeadId{site.stack, site.layer, attention->heads()[h]})];
      for (int64_t i = 0; i < w_HR.size(1); ++i) {
        const auto w = w_HR[static_cast<int64_t>(h)][i].item<double>();
        one["frequencies"].push_back(w);
        one["wavelengths"].push_back(2 * std::numbers::pi / w);
      }
      one["factor"] = number(position->score_factor(), h, 1);
      one["growth"] = number(position->score_growth(), h, 0);
    }
    spread += w_HR.log().std(0, /*unbiased=*/false).mean().item<double>();
    ++attentions;
  }
  if (attentions == 0) throw UsageError("frequencies: expected a model of which an attention has the position adarope");
  return {{"heads", std::move(heads)}, {"spread", spread / static_cast<double>(attentions)}};
}

}  // namespace headlab
