#include "src/measure/windows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "modules/attention/gate/windows.h"
#include "modules/mixer/attention_in.h"
#include "modules/tensor/torch.h"
#include "src/task/token_loss.h"

namespace headlab {

void WindowsMeasureOptions::describe(Fields& fields) {
  fields.add("length", length, "T, the length that windows are held against")
      .at_least(1)
      .unit("tokens")
      .means("absent: the longest text of the training data");
}

nlohmann::ordered_json WindowsMeasure::measure(Model& model, const Task& task, uint64_t) {
  Mode evaluating(model, false);
  const auto lengths = task.lengths("train");
  int64_t T = 1;
  for (const auto* of_texts : {&lengths.first, &lengths.second})
    for (const auto length : *of_texts) T = std::max(T, length);
  T = options_.length.value_or(T);
  auto windows = nlohmann::ordered_json::object(), layers = nlohmann::ordered_json::object();
  std::vector<int64_t> all;
  double pairs = 0;
  for (const auto& [site, mixer] : model.mixers()) {
    const auto* attention = attention_in(*mixer);
    if (!attention || site.stack == Stack::dec_cross || attention->heads().empty()) continue;
    HeadOutline outline{attention->shape().H(), {}};
    for (const auto& gate : attention->gate_list()) gate->outline(outline);
    std::vector<int64_t> of_layer;
    for (std::size_t h = 0; h < attention->heads().size(); ++h) {
      const auto window = outline.window_H.empty() || outline.window_H[h] == 0 ? T : outline.window_H[h];
      of_layer.push_back(window);
      windows[to_string(HeadId{site.stack, site.layer, attention->heads()[h]})] = window;
      pairs += static_cast<double>(visible_pairs(window, T));
    }
    layers[to_string(site)] = allocated_context_ratio(of_layer, T);
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
  const auto full = static_cast<double>(all.size()) * static_cast<double>(visible_pairs(0, T));
  return {{"length", T},
          {"acr", all.empty() ? 0.0 : allocated_context_ratio(all, T)},
          {"layers", std::move(layers)},
          {"pairs", all.empty() ? 0.0 : pairs / full},
          {"windows", std::move(windows)}};
}

}  // namespace headlab
