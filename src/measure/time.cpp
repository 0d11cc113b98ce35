
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/tensor/torch.h"
#include "src/measure/measure.h"
#include "src/task/token_loss.h"

namespace headlab {

void TimeMeasureOptions::describe(Fields& fields) {
  fields.add("lengths", lengths, "lengths of the random texts, in order").at_least(1).unit("tokens");
  fields.add("rows", rows, "texts side by side").at_least(1);
  fields.add("repeats", repeats, "passes of which the fastest counts").at_least(1);
}

nlohmann::ordered_json TimeMeasure::measure(Model& model, const Task& task, uint64_t seed) {
  torch::NoGradGuard no_grad;
  Mode evaluating(model, false);
  nlohmann::ordered_json result{{"lengths", options_.lengths}, {"seconds", nlohmann::ordered_json::array()}};
  std::vector<double> fastest;
  for (const auto length : options_.lengths) {
    if (length > model.max_length())
      throw ShapeError("measure.time.lengths: expected at most model.embedding.max_length (" +
                       std::to_string(model.max_length()) + "), got " + std::to_string(length));
    const auto ids = [&](const std::string& name, int64_t vocabulary) {
      return torch::randint(std::max<int64_t>(vocabulary, 1), {options_.rows, length}, named_generator(seed, name),
                            torch::dtype(torch::kLong))
          .to(model.device());
    };
    Batch batch;
    batch.source_BS = ids("source", task.context().source_vocabulary);
    batch.target_BT = ids("target", model.target_vocabulary());
    double best = INFINITY;
    for (int64_t i = 0; i <= options_.repeats; ++i) {  // the first warms up
      Forward run;
      const auto before = std::chrono::steady_clock::now();
      model.hidden(batch, run).sum().item<double>();  // reading a number waits for the device
      const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
      if (i > 0) best = std::min(best, seconds);
    }
    fastest.push_back(best);
    result["seconds"].push_back(best);
  }
  result["longest"] = fastest.back();
  if (fastest.size() > 1)
    result["exponent"] =
        std::log(fastest.back() / fastest.front()) /
        std::log(static_cast<double>(options_.lengths.back()) / static_cast<double>(options_.lengths.front()));
  return result;
}

}  // namespace headlab
