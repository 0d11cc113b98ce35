#include "modules/attention/position/rope.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

std::shared_ptr<Rope> rope_of(const RopeOptions& options, int64_t K) {
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = K;
  return std::make_shared<Rope>(options, shape);
}

/// The angle of pair i at position 1, from what turning (1, 0) gives.
std::vector<double> angles(Rope& rope, int64_t K) {
  auto x = torch::zeros({1, 1, 1, K}, torch::kFloat64);
  for (int64_t i = 0; i < K; i += 2) x[0][0][0][i] = 1;
  const auto y = rope.rotate(x, torch::ones({1}, torch::kLong))[0][0][0];
  std::vector<double> found;
  for (int64_t i = 0; i < K; i += 2) found.push_back(std::atan2(y[i + 1].item<double>(), y[i].item<double>()));
  return found;
}

Tensor scores_at(Rope& rope, int64_t shift, int64_t K) {
  const auto q = noise({1, 2, 5, K}, "q"), k = noise({1, 2, 5, K}, "k");
  const auto at = torch::arange(shift, shift + 5);
  return torch::matmul(rope.rotate(q, at), rope.rotate(k, at).transpose(-2, -1));
}

}  // namespace

TEST_CASE("a share of a head is rotated, and the rest stays bit for bit") {
  DefaultDtype guard(torch::kFloat64);
  RopeOptions options;
  options.fraction = 0.5;
  for (const auto& [K, R] : std::vector<std::pair<int64_t, int64_t>>{{8, 4}, {10, 4}, {7, 2}, {4, 2}}) {
    INFO(K);
    auto rope = rope_of(options, K);
    const auto x = noise({2, 3, 6, K}, "x");
    const auto y = rope->rotate(x, torch::arange(6));
    CHECK(torch::equal(y.slice(-1, R), x.slice(-1, R)));
    CHECK(difference(y.slice(-1, 0, R), rope_of({}, R)->rotate(x.slice(-1, 0, R), torch::arange(6))) == 0);
    CHECK(difference(y, x) > 0.1);
    CHECK(difference(scores_at(*rope, 0, K), scores_at(*rope, 700, K)) < 1e-10);
  }
}

TEST_CASE("linear scaling puts position s p where p was") {
  DefaultDtype guard(torch::kFloat64);
  RopeOptions scaled;
  scaled.scaling = "linear";
  scaled.factor = 4;
  const auto x = noise({1, 2, 3, 6}, "x");
  const auto at = torch::tensor({1, 5, 11}, torch::kLong);
  CHECK(difference(rope_of(scaled, 6)->rotate(x, at * 4), rope_of({}, 6)->rotate(x, at)) < 1e-14);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(angles(*rope_of(scaled, 6), 6)[i] == Approx(std::pow(10000.0, -static_cast<double>(i) / 3) / 4));
  CHECK(difference(scores_at(*rope_of(scaled, 6), 0, 6), scores_at(*rope_of(scaled, 6), 900, 6)) < 1e-10);
}

TEST_CASE("NTK scaling leaves the fastest pair, slows the slowest s times and those between geometrically") {
  DefaultDtype guard(torch::kFloat64);
  RopeOptions plain, scaled;
  plain.base = scaled.base = 500;
  scaled.scaling = "ntk";
  scaled.factor = 8;
  for (const int64_t K : {4, 8, 64}) {
    const auto before = angles(*rope_of(plain, K), K), after = angles(*rope_of(scaled, K), K);
    CHECK(after.front() == before.front());
    CHECK(after.back() == Approx(before.back() / 8).epsilon(1e-12));
    for (std::size_t i = 0; i < before.size(); ++i)
      CHECK(after[i] ==
            Approx(before[i] * std::pow(8.0, -static_cast<double>(i) / static_cast<double>(before.size() - 1)))
                .epsilon(1e-12));
  }
  scaled.factor = 1;
  CHECK(angles(*rope_of(scaled, 8), 8) == angles(*rope_of(plain, 8), 8));
}

TEST_CASE("RoPE in half precision turns by angles of full precision, far positions included") {
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    auto rope = rope_of({}, 8);
    const std::shared_ptr<torch::nn::Module> module = rope;
    module->to(type);
    const auto x = noise({1, 2, 4, 8}, "x").to(type);
    const auto at = torch::tensor({0, 100, 4001, 30000}, torch::kLong);
    const auto y = rope->rotate(x, at);
    CHECK(y.scalar_type() == type);
    DefaultDtype guard(torch::kFloat64);
    const auto exact = rope_of({}, 8)->rotate(x.to(torch::kFloat64), at);
    // Rounding of the type alone: x, two products and their sum, of numbers up to 4; the float angle of 30000 is right
    // to 0.001.
    CHECK(difference(y, exact) < (type == torch::kFloat16 ? 0.012 : 0.06));
    module->to(torch::kFloat64);
    CHECK(rope->named_buffers()["frequency"].scalar_type() == torch::kFloat64);
  }
}

TEST_CASE("what RoPE can't rotate is refused") {
  RopeOptions little, ntk;
  little.fraction = 0.2;
  ntk.scaling = "ntk";
  CHECK_THROWS_WITH(
      rope_of(little, 8),
      "position.rope: expected a head width of which the fraction holds a pair, got 8; choose another head_width");
  CHECK_NOTHROW(rope_of(little, 10));
  CHECK_THROWS_WITH(
      rope_of(ntk, 2),
      "position.rope: expected a head width of which two pairs are rotated, for ntk, got 2; choose another head_width");
  RopeOptions idle;
  idle.factor = 2;
  Problems problems;
  idle.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "factor");
}

}  // namespace headlab
