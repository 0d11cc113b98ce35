#include "modules/model/updates.h"

#include "modules/tensor/torch.h"

namespace headlab {

void add_stats(std::map<std::string, Tensor>& sums, const std::map<std::string, Tensor>& more) {
  for (const auto& [name, value] : more) {
    auto& sum = sums[name];
    sum = sum.defined() ? sum + value : value;
  }
}

void update_modules(Model& model, const std::map<std::string, Tensor>& stats) {
  torch::NoGradGuard no_grad;
  for (const auto& [site, mixer] : model.mixers())
    for (const auto& module : mixer->modules(/*include_self=*/true))
      if (auto* updated = dynamic_cast<Updated*>(module.get())) updated->update(site, stats);
}

}  // namespace headlab
