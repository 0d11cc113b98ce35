#include "src/metrics/interval.h"

#include <cmath>

#include "modules/base/error.h"

namespace headlab {
namespace {

// P(|T| <= t), by the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double central_share(double t, int64_t freedom) {
  constexpr double pi = 3.14159265358979323846;
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine2 = std::cos(angle) * std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? std::cos(angle) : 1, sum = freedom == 1 ? 0 : term;
  for (int64_t i = odd ? 3 : 2; i < freedom; i += 2) {
    term *= cosine2 * static_cast<double>(i - 1) / static_cast<double>(i);
    sum += term;
  }
  return odd ? 2 / pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

}  // namespace

double student_quantile(int64_t freedom) {
  if (freedom < 1)
    throw Error("student_quantile: expected at least 1 degree of freedom, got " + std::to_string(freedom));
  double low = 1.9, high = 13;  // all quantiles lie between those of infinity and of 1
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (central_share(middle, freedom) < 0.95 ? low : high) = middle;
  }
  return (low + high) / 2;
}

Interval mean_interval(const std::vector<double>& values) {
  if (values.empty()) throw Error("mean_interval: expected at least one value");
  const auto n = static_cast<double>(values.size());
  Interval interval;
  for (double value : values) interval.mean += value / n;
  double squares = 0;
  for (double value : values) squares += (value - interval.mean) * (value - interval.mean);
  const double half =
      values.size() == 1 ? 0
                         : student_quantile(static_cast<int64_t>(values.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  interval.low = interval.mean - half;
  interval.high = interval.mean + half;
  return interval;
}

}  // namespace headlab
