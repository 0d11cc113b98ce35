#pragma once

#include "src/measure/measure.h"

namespace headlab {

/// How far the matrices M that adapters multiply queries, keys and values by (Adapter::maps) are from leaving them as
/// they are:
///   "q", "k", "v": the mean over such matrices of |M - I|, Frobenius norm; only where there are some
///   "distance": the mean over all; "maps": how many there are, and "distance" is missing where it is 0
class MapsMeasure : public Measure {
 public:
  explicit MapsMeasure(const NoOptions&) {}
  nlohmann::ordered_json measure(Model& model, const Task& task, uint64_t seed) override;
};

}  // namespace headlab
