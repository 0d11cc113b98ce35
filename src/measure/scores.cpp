
#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/tensor/torch.h"
#include "src/measure/measure.h"

namespace headlab {

void ScoreMeasureOptions::describe(Fields& fields) {
  fields.add("width", width, "entries of a query and of a key").at_least(1);
  fields.add("keys", keys, "keys of a row of scores").at_least(2);
  fields.add("queries", queries, "rows of scores that are drawn").at_least(1);
  fields.add("sigma", sigma, "standard deviation of each entry").above(0);
  fields.add("query_mean", query_mean, "mean of each entry of a query");
  fields.add("key_mean", key_mean, "mean of each entry of a key");
  fields.add("scale", scale, "factor of the scores").means("absent: 1/sqrt(width)");
}

nlohmann::ordered_json ScoreMeasure::measure(Model&, const Task&, uint64_t seed) {
  torch::NoGradGuard no_grad;
  const auto& o = options_;
  const auto q_generator = named_generator(seed, "queries"), k_generator = named_generator(seed, "keys");
  const double factor = o.scale.value_or(1 / std::sqrt(static_cast<double>(o.width)));
  double sum = 0, squares = 0, largest = 0, gradient = 0;
  const int64_t chunk = std::max<int64_t>(1, (1 << 22) / (o.keys * o.width));
  for (int64_t done = 0; done < o.queries; done += chunk) {
    const auto rows = std::min(chunk, o.queries - done);
    const auto draw = [&](double mean, const at::Generator& generator) {
      return torch::randn({rows, o.keys, o.width}, generator, torch::dtype(torch::kFloat64)) * o.sigma + mean;
    };
    const auto s = (draw(o.query_mean, q_generator) * draw(o.key_mean, k_generator)).sum(-1);
    sum += s.sum().item<double>();
    squares += s.square().sum().item<double>();
    const auto w = (s * factor).softmax(-1);
    largest += w.amax(-1).sum().item<double>();
    // |diag(w) - w w^T|_F^2 = sum w_i^2 - 2 sum w_i^3 + (sum w_i^2)^2
    const auto two = w.square().sum(-1);
    gradient += (two - 2 * w.pow(3).sum(-1) + two.square()).clamp_min(0).sqrt().sum().item<double>();
  }
  const auto n = static_cast<double>(o.queries * o.keys), queries = static_cast<double>(o.queries);
  const double variance = squares / n - (sum / n) * (sum / n);
  const double power = o.sigma * o.sigma, q2 = o.query_mean * o.query_mean, k2 = o.key_mean * o.key_mean;
  return {{"variance", variance},
          {"scaled_variance", variance * factor * factor},
          {"expected", static_cast<double>(o.width) * ((power + q2) * (power + k2) - q2 * k2)},
          {"largest_weight", largest / queries},
          {"gradient", gradient / queries}};
}

}  // namespace headlab
