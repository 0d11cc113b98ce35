
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "modules/tensor/torch.h"
#include "src/measure/measure.h"
#include "src/task/token_loss.h"
#include "src/train/optimizer.h"

namespace headlab {

void GradientMeasureOptions::describe(Fields& fields) {
  fields.add("split", split, "the part of the data").one_of({"train", "valid", "test"});
  fields.add("examples", examples, "the first so many examples").at_least(1);
}

nlohmann::ordered_json GradientMeasure::measure(Model& model, const Task& task, uint64_t seed) {
  Mode evaluating(model, false);
  const auto lengths = task.lengths(options_.split);
  const auto count = static_cast<int64_t>(std::max(lengths.first.size(), lengths.second.size()));
  std::vector<int64_t> examples(static_cast<std::size_t>(std::min(options_.examples, count)));
  std::iota(examples.begin(), examples.end(), 0);
  const auto batch = task.batch(options_.split, examples, model.device());
  Forward run;
  run.noise_seed = seed;
  const auto parameters = trained_parameters(model);
  std::vector<Tensor> inputs;
  for (const auto& [name, parameter] : parameters) inputs.push_back(parameter);
  const auto loss = token_loss(model, batch, 0, run).sum / static_cast<double>(batch.tokens);
  const auto gradients = torch::autograd::grad({loss}, inputs, {}, false, false, /*allow_unused=*/true);

  // "encoder.layers.3.feed_forward.inner.weight" belongs to layer 3 of the encoder.
  std::map<std::string, std::map<int64_t, double>> squares;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& name = parameters[i].first;
    const auto at = name.find(".layers.");
    if (at == std::string::npos || !gradients[i].defined()) continue;
    squares[name.substr(0, at)][std::stoll(name.substr(at + 8))] +=
        gradients[i].to(torch::kFloat64).square().sum().item<double>();
  }
  nlohmann::ordered_json result{{"loss", loss.item<double>()},
                                {"layers", nlohmann::ordered_json::object()},
                                {"last_over_first", nlohmann::ordered_json::object()}};
  for (const auto& [stack, layers] : squares) {
    auto norms = nlohmann::ordered_json::array();
    for (const auto& [layer, square] : layers) norms.push_back(std::sqrt(square));
    result["last_over_first"][stack] = std::sqrt(layers.rbegin()->second / layers.begin()->second);
    result["layers"][stack] = std::move(norms);
  }
  return result;
}

}  // namespace headlab
