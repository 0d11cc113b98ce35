#include "src/measure/maps.h"

#include <nlohmann/json.hpp>

#include "modules/attention/slots.h"
#include "modules/tensor/torch.h"

namespace headlab {

nlohmann::ordered_json MapsMeasure::measure(Model& model, const Task&, uint64_t) {
  const torch::NoGradGuard no_grad;
  const std::string names[] = {"q", "k", "v"};
  std::map<std::string, std::vector<double>> distances;
  for (const auto& [site, mixer] : model.mixers())
    for (const auto& module : mixer->modules()) {
      const auto* adapter = dynamic_cast<const Adapter*>(module.get());
      const auto maps = adapter ? adapter->maps() : std::vector<Tensor>();
      for (std::size_t i = 0; i < maps.size(); ++i) {
        if (!maps[i].defined()) continue;
        const auto map = maps[i].to(torch::kFloat64);
        distances[names[i]].push_back((map - torch::eye(map.size(0), map.options())).norm().item<double>());
      }
    }
  nlohmann::ordered_json result;
  double all = 0;
  int64_t count = 0;
  for (const auto& [name, values] : distances) {
    double sum = 0;
    for (auto value : values) sum += value;
    result[name] = sum / static_cast<double>(values.size());
    all += sum;
    count += static_cast<int64_t>(values.size());
  }
  if (count > 0) result["distance"] = all / static_cast<double>(count);
  result["maps"] = count;
  return result;
}

}  // namespace headlab
