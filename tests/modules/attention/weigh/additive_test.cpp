// Additive scores; that the walk with them equals plain loops is in attention_test.cpp.
#include "modules/attention/weigh/additive.h"

#include <cmath>

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

std::shared_ptr<Additive> additive_of(int64_t H, int64_t K, std::optional<int64_t> width = {}) {
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = K;
  for (int64_t h = 0; h < H; ++h) shape->heads.push_back(h);
  AdditiveOptions options;
  options.width = width;
  auto score = std::make_shared<Additive>(options, shape);
  fill(*score);
  return score;
}

}  // namespace

TEST_CASE("additive scores equal a double loop over queries and keys") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t B = 2, H = 3, T = 4, S = 5, K = 2, A = 7;
  auto score = additive_of(H, K, A);
  const auto q = noise({B, H, T, K}, "q"), k = noise({B, H, S, K}, "k");
  const auto s = score->score(q, k, {0, 1, 2}).detach();
  CHECK(shape_text(s) == "[2, 3, 4, 5]");
  const auto p = score->named_parameters();
  const auto w_q = p["query_weight"].accessor<double, 3>(), w_k = p["key_weight"].accessor<double, 3>();
  const auto bias = p["bias"].accessor<double, 2>(), w = p["weight"].accessor<double, 2>();
  const auto qs = q.accessor<double, 4>(), ks = k.accessor<double, 4>();
  double worst = 0;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t j = 0; j < S; ++j) {
          double expected = 0;
          for (int64_t a = 0; a < A; ++a) {
            double hidden = bias[h][a];
            for (int64_t i = 0; i < K; ++i) hidden += w_q[h][a][i] * qs[b][h][t][i] + w_k[h][a][i] * ks[b][h][j][i];
            expected += w[h][a] * std::tanh(hidden);
          }
          worst = std::max(worst, std::abs(expected - s[b][h][t][j].item<double>()));
        }
  CHECK(worst < 1e-13);
}

TEST_CASE("some heads of an additive score use their own weights") {
  auto score = additive_of(4, 3);
  const auto q = noise({1, 4, 2, 3}, "q"), k = noise({1, 4, 5, 3}, "k");
  const auto all = score->score(q, k, {0, 1, 2, 3});
  for (const std::vector<int64_t>& heads : {std::vector<int64_t>{1, 3}, {2}, {3, 0}}) {
    const auto index = torch::tensor(heads, torch::kLong);
    CHECK(difference(score->score(q.index_select(1, index), k.index_select(1, index), heads),
                     all.index_select(1, index)) < 1e-6);
  }
}

TEST_CASE("additive scores have H (2 A K + 2 A) parameters, are bounded by the output weights, and start unbiased") {
  for (const auto& [width, A] : std::vector<std::pair<std::optional<int64_t>, int64_t>>{{{}, 3}, {5, 5}}) {
    auto score = additive_of(2, 3, width);
    int64_t count = 0;
    for (const auto& parameter : score->parameters()) count += parameter.numel();
    CHECK(count == 2 * (2 * A * 3 + 2 * A));
    const auto s = score->score(noise({1, 2, 4, 3}, "q") * 1000, noise({1, 2, 4, 3}, "k") * 1000, {0, 1}).detach();
    const auto bound = score->named_parameters()["weight"].abs().sum(-1).view({1, 2, 1, 1});
    CHECK((s.abs() <= bound * 1.00001).all().item<bool>());
    initialise(*score, 1);
    CHECK(score->named_parameters()["bias"].abs().max().item<double>() == 0);
  }
}

TEST_CASE("additive attention takes no fused kernel, and says so") {
  auto options = small_attention();
  options.weigh.score.choose("additive");
  auto attention = make_attention(options, small_width);
  Forward run;
  CHECK(!attention->fusable({Stack::dec_self, 0}, run));
  const auto ran = operators_of([&] { attention->forward(call_of(noise({1, 4, small_width}, "x"), run, causal())); });
  CHECK(ran.count("aten::scaled_dot_product_attention") == 0);
  CHECK(ran.count("aten::tanh") == 1);
}

TEST_CASE("a query that may see nothing gives 0 and finite gradients with additive scores") {
  auto options = small_attention();
  options.weigh.score.choose("additive");
  auto attention = make_attention(options, small_width);
  auto x = noise({2, 3, small_width}, "x").requires_grad_();
  Visibility see;
  see.key_mask_BS = torch::tensor({{true, true, true}, {false, false, false}});
  Tensor z;
  LambdaTap tap([](At at, Site) { return at == At::z; }, [&](At, Site, Tensor value) { return z = value; });
  Forward run;
  run.taps = {&tap};
  attention->forward(call_of(x, run, see)).sum().backward();
  CHECK(z[1].abs().max().item<double>() == 0);
  CHECK(z[0].abs().max().item<double>() > 0);
  CHECK(finite(x.grad()));
  for (const auto& item : attention->named_parameters()) CHECK(finite(item.value().grad()));
}

}  // namespace headlab
