// 1602.02068 against the definition by loops, a closed form of its Jacobian, and projections found by search.
#include "modules/attention/weigh/sparsemax.h"

#include <algorithm>
#include <limits>

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

/// By the definition, one row.
std::vector<double> by_loops(const std::vector<double>& scores) {
  auto falling = scores;
  std::sort(falling.rbegin(), falling.rend());
  double sum = 0, tau = 0;
  for (std::size_t k = 1; k <= falling.size(); ++k) {
    sum += falling[k - 1];
    if (1 + static_cast<double>(k) * falling[k - 1] > sum) tau = (sum - 1) / static_cast<double>(k);
  }
  std::vector<double> weights;
  for (auto score : scores) weights.push_back(std::max(score - tau, 0.0));
  return weights;
}

constexpr double hidden = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("sparsemax is the nearest point of the simplex: known values, the definition, shifts, one dominant score",
          "[paper-52]") {
  DefaultDtype guard(torch::kFloat64);
  Sparsemax sparsemax{NoOptions()};
  CHECK(difference(sparsemax.weights(torch::tensor({-2.0, 0.0, 0.5})), torch::tensor({0.0, 0.25, 0.75})) < 1e-15);
  CHECK(difference(sparsemax.weights(torch::tensor({0.3, 1.4, 0.4})), torch::tensor({0.0, 1.0, 0.0})) <
        1e-15);  // a gap of 1
  CHECK(difference(sparsemax.weights(torch::tensor({2.0, 2.0, 2.0, 2.0})), torch::full({4}, 0.25)) < 1e-15);
  for (const double scale : {0.1, 1.0, 5.0}) {
    const auto scores = noise({2, 3, 4, 7}, "s" + std::to_string(scale)) * scale;
    const auto weights = sparsemax.weights(scores);
    CHECK(difference(weights.sum(-1), torch::ones({2, 3, 4})) < 1e-12);
    CHECK(difference(sparsemax.weights(scores + 1000.0), weights) < 1e-11);
    const auto rows = scores.view({-1, 7}), made = weights.view({-1, 7});
    for (int64_t r = 0; r < rows.size(0); ++r) {
      const std::vector<double> row(rows[r].data_ptr<double>(), rows[r].data_ptr<double>() + 7);
      const auto expected = by_loops(row);
      for (int64_t i = 0; i < 7; ++i)
        CHECK(made[r][i].item<double>() == Approx(expected[static_cast<std::size_t>(i)]).margin(1e-12));
    }
  }
}

TEST_CASE("the gradient of sparsemax is diag(s) - s s^T / |s| on its support", "[paper-52]") {
  DefaultDtype guard(torch::kFloat64);
  Sparsemax sparsemax{NoOptions()};
  for (int row = 0; row < 20; ++row) {
    auto scores = noise({6}, "row" + std::to_string(row)).requires_grad_();
    const auto weights = sparsemax.weights(scores);
    const auto s = weights.detach().gt(0).to(torch::kFloat64);
    const auto expected = torch::diag(s) - torch::outer(s, s) / s.sum();
    for (int64_t i = 0; i < 6; ++i) {
      const auto got = torch::autograd::grad({weights[i]}, {scores}, {}, true)[0];
      CHECK(difference(got, expected[i]) < 1e-10);
    }
  }
}

TEST_CASE("a hidden key has no weight and no gradient, and a row of hidden keys gives zeros", "[paper-52]") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    DefaultDtype guard(type);
    Sparsemax sparsemax{NoOptions()};
    auto scores =
        torch::tensor({0.4, hidden, 0.1, hidden, hidden, hidden, hidden, hidden, -900.0, -900.5, hidden, -1e6},
                      torch::kFloat64)
            .to(type)
            .view({3, 4})
            .requires_grad_();
    const auto weights = sparsemax.weights(scores);
    CHECK(difference(weights[0], torch::tensor({0.65, 0.0, 0.35, 0.0})) < 1e-6);
    CHECK(weights[1].eq(0).all().item<bool>());
    CHECK(difference(weights[2], torch::tensor({0.75, 0.25, 0.0, 0.0})) < 1e-4);
    const auto got = torch::autograd::grad({(weights * noise({3, 4}, "g")).sum()}, {scores})[0];
    CHECK(finite(got));
    CHECK(got[1].eq(0).all().item<bool>());
    CHECK(got[0][1].item<double>() == 0);
  }
}
