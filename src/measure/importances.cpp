#include "src/measure/importances.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "src/heads/score/dynamic_importance.h"

namespace headlab {

nlohmann::ordered_json ImportancesMeasure::measure(Model& model, const Task& task, uint64_t) {
  auto attentions = nlohmann::ordered_json::object(), heads = nlohmann::ordered_json::object();
  const auto means = mean_importances(model, task, options_, "importances", /*some_may_lack=*/true);
  double all = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto found = means.find(site);
    if (found == means.end()) continue;
    const auto& mean = found->second;
    const auto kl = std::accumulate(mean.kl_H.begin(), mean.kl_H.end(), 0.0);
    all += kl;
    attentions[to_string(site)]["kl"] = kl;
    for (std::size_t i = 0; i < mixer->heads().size(); ++i)
      heads[to_string(HeadId{site.stack, site.layer, mixer->heads()[i]})] = {{"importance", mean.importance_H[i]},
                                                                             {"kl", mean.kl_H[i]}};
  }
  return {{"kl", all / static_cast<double>(means.size())},
          {"attentions", std::move(attentions)},
          {"heads", std::move(heads)}};
}

}  // namespace headlab
