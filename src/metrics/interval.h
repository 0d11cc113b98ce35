#pragma once

#include <cstdint>
#include <vector>

#include "src/metrics/bootstrap.h"

namespace headlab {

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom (at least 1): what a two-sided 95 % interval
/// multiplies the standard error by. 1: 12.706; 2: 4.303; infinity: 1.960. Right to 1e-9.
double student_quantile(int64_t freedom);

/// The mean of independent measurements (one a seed) and its 95 % interval, mean +- t s / sqrt(n). With one value the
/// interval is that value: nothing is known of its spread. Throws Error without values.
Interval mean_interval(const std::vector<double>& values);

}  // namespace headlab
