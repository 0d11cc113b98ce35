#include "src/convert/parafac.h"

#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

ParafacOptions of_rank(int64_t rank) {
  ParafacOptions options;
  options.rank = rank;
  return options;
}

/// [H,D,E], one number at a time.
Tensor summed(const Parafac& found) {
  const auto H = found.mix_HR.size(0), D = found.left_DR.size(0), E = found.right_ER.size(0), R = found.mix_HR.size(1);
  auto sum = torch::zeros({H, D, E}, torch::kFloat64);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < D; ++i)
      for (int64_t j = 0; j < E; ++j) {
        double one = 0;
        for (int64_t r = 0; r < R; ++r)
          one += (found.left_DR[i][r] * found.mix_HR[h][r] * found.right_ER[j][r]).item<double>();
        sum[h][i][j] = one;
      }
  return sum;
}

}  // namespace

TEST_CASE("ALS finds 8 planted components under 1 % noise, where separate heads of the same total leave most of it") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t D = 32, H = 8, R = 8;
  int soon = 0;
  for (int seed = 0; seed < 5; ++seed) {
    const auto name = [&](const char* what) { return what + std::to_string(seed); };
    const auto left = noise({D, R}, name("left")), mix = noise({H, R}, name("mix")),
               right = noise({D, R}, name("right"));
    auto T = torch::einsum("ir,hr,jr->hij", {left, mix, right});
    const auto grain = noise(T.sizes(), name("grain"));
    T = T + 0.01 * T.norm() / grain.norm() * grain;
    const auto found = parafac(T, torch::eye(D).expand({H, D, D}), of_rank(R), named_generator(1, name("start")));
    CHECK(found.error <= 0.01);
    soon += found.iterations <= 101;
    CHECK(found.separate_error > 0.5);
    // Heads that keep one dimension each, the best for each head: the first singular value.
    auto rest = T.clone();
    for (int64_t h = 0; h < H; ++h) {
      const auto [U, S, V] = torch::linalg_svd(T[h], false);
      rest[h] -= S[0] * torch::outer(U.select(1, 0), V[0]);
    }
    const auto one_each = (rest.norm() / T.norm()).item<double>();
    CHECK(one_each > 0.6);
    CHECK(one_each < 0.8);
    CHECK(found.separate_error <= one_each + 1e-12);  // as many components, wherever they are largest
  }
  CHECK(soon >= 4);  // how long it takes depends on the numbers it starts from
}

TEST_CASE("the error is that of the sum of components, and falls below that of separate heads") {
  DefaultDtype guard(torch::kFloat64);
  const auto left = noise({3, 7, 2}, "left"), right = noise({3, 5, 2}, "right");
  const auto T = torch::matmul(left, right.transpose(1, 2));
  double before = 1;
  for (int64_t rank = 1; rank <= 6; ++rank) {
    const auto found = parafac(left, right, of_rank(rank), named_generator(1, "start"));
    CHECK(found.error == Approx((summed(found) - T).norm().item<double>() / T.norm().item<double>()).margin(1e-12));
    CHECK(found.error <= found.separate_error);
    CHECK(found.error <= before + 1e-9);
    if (rank < 6) CHECK(found.error < 0.999 * found.separate_error);
    before = found.error;
    CHECK(difference(found.mix_HR.square().mean(0), torch::ones({rank})) < 1e-12);
    CHECK(difference(found.left_DR.norm(2, {0}), found.right_ER.norm(2, {0})) < 1e-12);
  }
  CHECK(before < 1e-14);  // as many dimensions as the heads have together
}

TEST_CASE("more components than there are, and slices of zeros, are no trouble") {
  DefaultDtype guard(torch::kFloat64);
  const auto left = noise({3, 7, 2}, "left"), right = noise({3, 5, 2}, "right");
  const auto many = parafac(left, right, of_rank(20), named_generator(1, "start"));
  CHECK(many.error < 1e-14);
  CHECK(finite(many.left_DR));
  CHECK(shape_text(many.mix_HR) == "[3, 20]");
  const auto nothing = parafac(left * 0, right, of_rank(4), named_generator(1, "start"));
  CHECK(nothing.error == 0);
  CHECK(difference(summed(nothing), torch::zeros({3, 7, 5})) == 0);
  const auto alike = parafac(left.narrow(0, 0, 1).expand({3, 7, 2}), right.narrow(0, 0, 1).expand({3, 5, 2}),
                             of_rank(2), named_generator(1, "start"));
  CHECK(alike.error < 1e-6);  // equal heads share what they have
  CHECK(alike.separate_error > 0.5);
}

}  // namespace headlab
