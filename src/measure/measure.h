#pragma once

#include <nlohmann/json_fwd.hpp>

#include "modules/model/model.h"
#include "src/task/task.h"

namespace headlab {

/// A quantity of a model, or of one of its mechanisms, that no metric of a task gives; the model stays as it is.
struct Measure {
  virtual ~Measure() = default;
  virtual nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) = 0;
};

using Measures = Registry<Measure>;
const Measures& measures();
const Catalogue& measure_catalogue();

struct ScoreMeasureOptions : Described<ScoreMeasureOptions> {
  int64_t width = 64, keys = 64, queries = 4096;
  double sigma = 1, query_mean = 0, key_mean = 0;
  std::optional<double> scale;
  void describe(Fields& fields) override;
};

/// Scores s = q k^T of queries and keys whose K entries are drawn from N(mean, sigma^2), before and after the factor c:
///   "variance", "scaled_variance": of all s and c s
///   "expected": K ((sigma^2 + m_q^2)(sigma^2 + m_k^2) - m_q^2 m_k^2), which is K sigma^4 for means of 0
///   "largest_weight": mean over queries of max_S softmax_S(c s)
///   "gradient": mean over queries of the Frobenius norm of d softmax(c s) / d (c s), which is 0 where softmax
///   saturates
/// Pairs are drawn anew for each score, so that scores are independent. Uses neither the model nor the task.
class ScoreMeasure : public Measure {
 public:
  explicit ScoreMeasure(const ScoreMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  ScoreMeasureOptions options_;
};

struct GradientMeasureOptions : Described<GradientMeasureOptions> {
  std::string split = "train";
  int64_t examples = 64;
  void describe(Fields& fields) override;
};

/// The l2 norm of the loss's gradient over the parameters of each layer, on the first examples of a split, in
/// evaluation mode: {"loss", "layers": {"encoder": [norm a layer], "decoder": [...]}, "last_over_first": {"encoder":
/// ..., ...}}.
class GradientMeasure : public Measure {
 public:
  explicit GradientMeasure(const GradientMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  GradientMeasureOptions options_;
};

struct TimeMeasureOptions : Described<TimeMeasureOptions> {
  std::vector<int64_t> lengths{128, 256, 512};
  int64_t rows = 1, repeats = 5;
  void describe(Fields& fields) override;
};

/// Seconds of a forward pass without gradient over random ids of each length (source and target alike):
/// {"lengths", "seconds": the fastest of `repeats`, "longest": that of the longest length, "exponent": the slope of
/// log seconds over log length from the first length to the last}. Throws ShapeError for a length above the model's.
class TimeMeasure : public Measure {
 public:
  explicit TimeMeasure(const TimeMeasureOptions& options) : options_(options) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;

 private:
  TimeMeasureOptions options_;
};

}  // namespace headlab
