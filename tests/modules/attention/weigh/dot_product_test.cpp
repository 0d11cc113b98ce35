// What the factor 1/sqrt(K) is for, in numbers.
#include "modules/attention/weigh/dot_product.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t pairs = 30000;

/// The variance of that many independent scores, of entries of q and k with these means and deviations.
double score_variance(int64_t K, std::optional<double> factor, double mean_q, double sigma_q, double mean_k,
                      double sigma_k, bool uniform = false) {
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = K;
  DotProductOptions options;
  options.scale = factor;
  DotProduct dot(options, shape);
  const auto entries = [&](double mean, double sigma, const std::string& name) {
    auto generator = named_generator(5, name + std::to_string(K));
    auto x = torch::empty({pairs, 1, 1, K}, torch::kFloat64);
    if (uniform)
      x.uniform_(-std::sqrt(3.0), std::sqrt(3.0), generator);
    else
      x.normal_(0, 1, generator);
    return x * sigma + mean;
  };
  const auto s = dot.score(entries(mean_q, sigma_q, "q"), entries(mean_k, sigma_k, "k"), {0});
  return s.var().item<double>();
}

/// The relative error of a sample variance has the deviation sqrt((kurtosis - 1) / pairs), and the kurtosis of a sum of
/// K products of normal numbers is at most 3 + 6/K: 0.016 for K = 1, 0.0082 for large K. Five of these:
double allowed(int64_t K) { return 5 * std::sqrt((2 + 6.0 / static_cast<double>(K)) / pairs); }

}  // namespace

TEST_CASE("entries of q k^T have the variance K sigma^4, and 1/sqrt(K) brings it to sigma^4") {
  for (const int64_t K : {1, 4, 64}) {
    for (const double sigma : {0.5, 2.0}) {
      const auto fourth = std::pow(sigma, 4);
      CHECK(score_variance(K, 1.0, 0, sigma, 0, sigma) == Approx(static_cast<double>(K) * fourth).epsilon(allowed(K)));
      CHECK(score_variance(K, std::nullopt, 0, sigma, 0, sigma) == Approx(fourth).epsilon(allowed(K)));
    }
    // Whatever the distribution.
    CHECK(score_variance(K, 1.0, 0, 1, 0, 1, /*uniform=*/true) == Approx(static_cast<double>(K)).epsilon(allowed(K)));
  }
}

TEST_CASE("with means the variance is K ((v_q + m_q^2)(v_k + m_k^2) - m_q^2 m_k^2)") {
  for (const int64_t K : {8, 64})
    for (const auto& [mean_q, mean_k] : std::vector<std::pair<double, double>>{{1.5, 0}, {0.7, -2}, {3, 3}}) {
      const double v_q = 0.25, v_k = 4;
      const auto m_q = mean_q * mean_q, m_k = mean_k * mean_k;
      const auto expected = static_cast<double>(K) * ((v_q + m_q) * (v_k + m_k) - m_q * m_k);
      CHECK(score_variance(K, 1.0, mean_q, 0.5, mean_k, 2) == Approx(expected).epsilon(allowed(K)));
      CHECK(expected != Approx(static_cast<double>(K) * v_q * v_k).epsilon(0.1));
    }
}

}  // namespace headlab
