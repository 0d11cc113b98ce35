#include "modules/model/cost.h"

namespace headlab {

ModelCost cost(const Model& model, int64_t S, int64_t T) {
  if (S < 1 || T < 1)
    throw UsageError("cost: expected lengths of at least 1, got " + std::to_string(S) + " and " + std::to_string(T));
  ModelCost result;
  result.parameters = model.parameter_count();
  result.flops = model.flops(S, T);
  result.flops_per_token = static_cast<double>(result.flops) / static_cast<double>(T);
  for (const auto& [site, mixer] : model.mixers()) {
    if (site.stack == Stack::dec_self) result.cache_per_target += mixer->cache_numbers();
    if (site.stack == Stack::dec_cross) result.cache_per_source += mixer->cache_numbers();
  }
  return result;
}

}  // namespace headlab
