#include "src/metrics/interval.h"

#include <cmath>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;

TEST_CASE("Student's quantiles are those of the tables") {
  const std::vector<std::pair<int64_t, double>> table{{1, 12.7062047364},  {2, 4.30265272991},  {3, 3.18244630528},
                                                      {4, 2.77644510520},  {5, 2.57058183661},  {10, 2.22813885196},
                                                      {30, 2.04227245630}, {100, 1.98397151845}};
  for (const auto& [freedom, quantile] : table) CHECK(std::abs(student_quantile(freedom) - quantile) < 1e-9);
  CHECK(std::abs(student_quantile(1000000) - 1.959966) < 1e-5);
  CHECK_THROWS_AS(student_quantile(0), Error);
}

TEST_CASE("the interval of a mean is t standard errors wide on either side") {
  // 1, 2, 3: mean 2, s = 1, standard error 1/sqrt(3).
  const auto interval = mean_interval({1, 2, 3});
  CHECK(std::abs(interval.mean - 2) < 1e-12);
  CHECK(std::abs(interval.high - (2 + 4.30265272991 / std::sqrt(3.0))) < 1e-9);
  CHECK(std::abs(interval.low - (2 - 4.30265272991 / std::sqrt(3.0))) < 1e-9);
  const auto alone = mean_interval({5});
  CHECK(alone.low == 5);
  CHECK(alone.high == 5);
  CHECK_THROWS_AS(mean_interval({}), Error);
}
