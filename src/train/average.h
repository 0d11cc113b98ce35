#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"

namespace headlab {

/// The mean of several sets of weights, one held in memory at a time: m = m + (w - m) / n in float64.
/// The mean of equal weights is those weights, bit for bit. What is no floating-point number (counters, masks) is taken
/// from the set that was added last.
class WeightAverage {
 public:
  /// Throws FileError, with `from`, where names, shapes or types differ from those of the first set.
  void add(const TensorMap& weights, const std::string& from);
  int64_t count() const { return count_; }
  /// In the types of the weights; there must be a set.
  TensorMap mean() const;

 private:
  TensorMap means_;  // so far, in float64; what is no floating-point number as it came
  std::map<std::string, at::ScalarType> types_;
  int64_t count_ = 0;
};

struct AveragedCheckpoints {
  TensorMap model;
  std::vector<int64_t> steps;
};

/// The mean of the weights of the last `count` checkpoints "step-<n>" in `folder`, and their steps, the earliest first.
/// Throws UsageError where there are fewer.
AveragedCheckpoints average_checkpoints(const std::filesystem::path& folder, int64_t count);

}  // namespace headlab
