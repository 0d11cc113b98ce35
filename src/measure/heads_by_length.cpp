#include "src/measure/heads_by_length.h"

#include <nlohmann/json.hpp>

#include "modules/attention/gate/heads_by_length.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

struct Found {
  const LengthBins* bins = nullptr;
  std::vector<double> core;  // numbers that a query is compared by, of the heads of each length
};

Found found_in(const Model& model) {
  Found found;
  for (const auto& [site, mixer] : model.mixers()) {
    if (const auto* separate = dynamic_cast<const SeparateHeads*>(mixer)) {
      found.bins = &separate->bins();
      for (const auto& attention : separate->attentions())
        found.core.push_back(static_cast<double>(attention->shape().original_heads * attention->shape().head_width));
    } else if (const auto* attention = dynamic_cast<const Attention*>(mixer)) {
      for (const auto& gate : attention->gate_list())
        if (const auto* by_length = dynamic_cast<const HeadsByLength*>(gate.get())) {
          found.bins = &by_length->bins();
          for (const auto heads : found.bins->heads)
            found.core.push_back(static_cast<double>(heads * attention->shape().head_width));
          break;
        }
    }
    if (found.bins) return found;
  }
  throw UsageError("heads_by_length: expected a model with the gate or the mixer heads_by_length");
}

}  // namespace

nlohmann::ordered_json HeadsByLengthMeasure::measure(Model& model, const Task& task, uint64_t) {
  const torch::NoGradGuard no_grad;
  const Mode evaluating(model, false);
  const auto found = found_in(model);
  const auto [source, target] = task.lengths(options_.split);
  const auto& lengths = source.empty() ? target : source;  // of what an encoder reads
  std::vector<Batches> of_lengths(found.bins->heads.size());
  std::vector<double> texts(of_lengths.size());
  double needed = 0, full = 0;
  for (const auto& chosen : options_.batches(task)) {
    std::vector<std::vector<int64_t>> parts(of_lengths.size());
    for (const auto example : chosen) {
      const auto length = lengths[static_cast<std::size_t>(example)];
      const auto bin = static_cast<std::size_t>(found.bins->bin_of(length));
      const auto square = static_cast<double>(length) * static_cast<double>(length);
      parts[bin].push_back(example);
      needed += found.core[bin] * square;
      full += found.core.back() * square;
    }
    for (std::size_t bin = 0; bin < parts.size(); ++bin)
      if (!parts[bin].empty()) of_lengths[bin].push_back(parts[bin]);
  }
  nlohmann::ordered_json result{{"cost", needed / full}, {"lengths", nlohmann::ordered_json::object()}};
  for (std::size_t bin = 0; bin < of_lengths.size(); ++bin) {
    TokenTotals totals;
    for (const auto& examples : of_lengths[bin]) {
      const auto batch = task.batch(options_.split, examples, model.device());
      Forward run;
      totals.add(batch, target_logits(model, batch, run));
      texts[bin] += static_cast<double>(examples.size());
    }
    const auto name =
        bin < found.bins->thresholds.size() ? std::to_string(found.bins->thresholds[bin]) : std::string("longer");
    auto& one = result["lengths"][name] = {{"texts", texts[bin]}, {"heads", found.bins->heads[bin]}};
    if (totals.tokens > 0) one.update({{"accuracy", totals.accuracy()}, {"loss", totals.loss()}});
  }
  return result;
}

}  // namespace headlab
