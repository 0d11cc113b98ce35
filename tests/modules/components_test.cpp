// The plain components against closed forms: positions, embeddings, norms, feed-forward networks, the loss.
#include <cmath>

#include "modules/attention/position/rope.h"
#include "modules/embedding/embedding.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/layer/residual.h"
#include "modules/loss/cross_entropy.h"
#include "modules/norm/norm.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace F = torch::nn::functional;

// Positions -----------------------------------------------------------------------------------------------------------

TEST_CASE("odd-width-positions: a sinusoidal table may have an odd width", "[cases]") {
  Sinusoidal odd({}, 29, 10000);
  const auto table = odd.at(torch::arange(10000));
  CHECK(shape_text(table) == "[10000, 29]");
  for (int64_t c = 0; c < 29; ++c) CHECK(table[0][c].item<double>() == (c % 2 == 0 ? 0 : 1));
  CHECK(table.abs().max().item<double>() <= 1);
}

TEST_CASE("sinusoidal positions are sines and cosines of geometric wavelengths") {
  DefaultDtype guard(torch::kFloat64);
  for (const int64_t D : {8, 29}) {
    SinusoidalOptions options;
    options.base = 500;
    Sinusoidal positions(options, D, 64);
    const auto table = positions.at(torch::arange(64));
    for (const int64_t p : {0, 1, 17, 63})
      for (int64_t c = 0; c < D; ++c) {
        const auto angle = static_cast<double>(p) * std::pow(500.0, -static_cast<double>(c - c % 2) / static_cast<double>(D));
        CHECK(table[p][c].item<double>() == Approx(c % 2 == 0 ? std::sin(angle) : std::cos(angle)).margin(1e-12));
      }
  }
}

TEST_CASE("sinusoidal positions k apart differ by a rotation that depends on k alone") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t D = 10, k = 7;
  Sinusoidal positions({}, D, 50);
  const auto table = positions.at(torch::arange(50));
  for (int64_t i = 0; i < D / 2; ++i) {
    const auto turn = k * std::pow(10000.0, -2.0 * static_cast<double>(i) / D);
    const auto sine = table.select(1, 2 * i), cosine = table.select(1, 2 * i + 1);
    const auto later_sine = sine * std::cos(turn) + cosine * std::sin(turn);
    const auto later_cosine = cosine * std::cos(turn) - sine * std::sin(turn);
    CHECK(difference(later_sine.slice(0, 0, 50 - k), sine.slice(0, k)) < 1e-12);
    CHECK(difference(later_cosine.slice(0, 0, 50 - k), cosine.slice(0, k)) < 1e-12);
  }
}

TEST_CASE("positions of a batch are looked up row by row") {
  Sinusoidal positions({}, 6, 20);
  const auto at = torch::tensor({3, 4, 5, 0, 1, 2}, torch::kLong).view({2, 3});
  const auto both = positions.at(at);
  CHECK(shape_text(both) == "[2, 3, 6]");
  for (int64_t b = 0; b < 2; ++b) CHECK(torch::equal(both[b], positions.at(at[b])));
}

TEST_CASE("with RoPE scores depend on the distance alone") {
  DefaultDtype guard(torch::kFloat64);
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = 6;
  Rope rope({}, shape);
  const auto q = noise({1, 2, 5, 6}, "q"), k = noise({1, 2, 5, 6}, "k");
  const auto scores = [&](int64_t shift) {
    const auto at = torch::arange(shift, shift + 5);
    return torch::matmul(rope.rotate(q, at), rope.rotate(k, at).transpose(-2, -1));
  };
  CHECK(difference(scores(0), scores(1000)) < 1e-10);
  CHECK(difference(scores(0), torch::matmul(q, k.transpose(-2, -1))) > 0.1);
  CHECK(torch::equal(rope.rotate(q, torch::zeros({5}, torch::kLong)), q));
  CHECK(difference(rope.rotate(q, torch::arange(5)).norm(2, {-1}), q.norm(2, {-1})) < 1e-12);
  // Positions for each example.
  const auto pair = torch::cat({q, q});
  const auto each = rope.rotate(pair, torch::stack({torch::arange(5), torch::arange(9, 14)}));
  CHECK(torch::equal(each[0], rope.rotate(q, torch::arange(5))[0]));
  CHECK(torch::equal(each[1], rope.rotate(q, torch::arange(9, 14))[0]));
}

TEST_CASE("RoPE needs an even head width") {
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = 5;
  CHECK_THROWS_WITH(Rope({}, shape), "position.rope: expected an even head width, got 5; choose another head_width");
}

// Embeddings ----------------------------------------------------------------------------------------------------------

TEST_CASE("a scaled embedding is sqrt(D) times its row, bit for bit") {
  const auto held = std::make_shared<TokenTable>(11, 6);
  auto& table = *held;
  fill(table);
  const auto ids = torch::tensor({0, 3, 10}, torch::kLong).unsqueeze(0);
  const auto weight = table.named_parameters()["weight"];
  CHECK(torch::equal(table.embed(ids, true)[0], weight.index_select(0, ids[0]) * std::sqrt(6.0)));
  CHECK(torch::equal(table.embed(ids, false)[0], weight.index_select(0, ids[0])));
  CHECK(difference(table.logits(weight), torch::matmul(weight, weight.t())) < 1e-6);
}

TEST_CASE("embeddings start with variance 1/D") {
  const auto table = std::make_shared<TokenTable>(2000, 64);
  initialise(*table, 1);
  const auto weight = table->named_parameters()["weight"];
  CHECK(weight.var().item<double>() == Approx(1.0 / 64).epsilon(0.02));
  CHECK(weight.mean().item<double>() == Approx(0).margin(0.002));
}

TEST_CASE("too-long: a text longer than the limit is an error before any kernel runs", "[cases]") {
  EmbeddingOptions options;
  options.max_length = 5;
  Embed embed(options, 6, 0.0);
  const auto held = std::make_shared<TokenTable>(11, 6);
  auto& table = *held;
  fill(table);
  const auto ids = random_ids({2, 6}, 11, "ids");
  const auto positions = torch::arange(6);
  const auto message = "embedding: expected at most 5 tokens, got 6; raise model.embedding.max_length";
  const auto ran = operators_of([&] { CHECK_THROWS_WITH(embed.forward(table, ids, positions), message); });
  CHECK(ran.empty());
  CHECK_THROWS_WITH(embed.forward(table, ids.narrow(1, 0, 2), positions.narrow(0, 4, 2), 4), message);
  CHECK(shape_text(embed.forward(table, ids.narrow(1, 0, 5), positions.narrow(0, 0, 5))) == "[2, 5, 6]");
  CHECK_THROWS_WITH(embed.forward(table, ids[0], positions), "embedding.ids: expected [B, T], got [6]");
}

// Norms ---------------------------------------------------------------------------------------------------------------

TEST_CASE("a layer norm with gamma sqrt(variance + epsilon) and beta the mean restores its input") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  LayerNormOptions options;
  options.epsilon = 0.1;
  LayerNorm norm(options, 7);
  const auto x = noise({7}, "x") * 3 + 2;
  norm.named_parameters()["weight"].fill_(std::sqrt(x.var(/*unbiased=*/false).item<double>() + 0.1));
  norm.named_parameters()["bias"].fill_(x.mean().item<double>());
  CHECK(difference(norm.normalise(x), x) < 1e-12);
}

TEST_CASE("a layer norm has mean 0 and variance 1, and a constant input gives beta") {
  DefaultDtype guard(torch::kFloat64);
  const auto held = std::make_shared<LayerNorm>(LayerNormOptions(), 7);
  auto& norm = *held;
  initialise(norm, 1);
  const auto y = norm.normalise(noise({4, 3, 7}, "x") * 50);
  CHECK(y.mean(-1).abs().max().item<double>() < 1e-12);
  CHECK((y.var(-1, false) - 1).abs().max().item<double>() < 1e-6);
  CHECK(norm.normalise(torch::full({7}, 3.0)).abs().max().item<double>() == 0);
  // epsilon bounds the gain: a change of 1e-9 about a constant is not blown up to 1.
  auto almost = torch::full({7}, 3.0);
  almost[2] += 1e-9;
  CHECK(norm.normalise(almost).abs().max().item<double>() < 1e-9 / std::sqrt(1e-5) + 1e-12);
}

TEST_CASE("pre-norm adds f(norm(x)) and post-norm norms x + f(x)") {
  DefaultDtype guard(torch::kFloat64);
  const auto held = std::make_shared<LayerNorm>(LayerNormOptions(), 6);
  auto& norm = *held;
  fill(norm);
  const auto x = noise({2, 3, 6}, "x");
  const auto f = [](const Tensor& y) { return y.sin(); };
  const auto pre = residuals().make(Choice(residual_catalogue, "pre")), post = residuals().make(Choice(residual_catalogue, "post"));
  CHECK(torch::equal(pre->join(x, norm, 0.5, false, f), x + norm.normalise(x).sin()));
  CHECK(torch::equal(post->join(x, norm, 0.5, false, f), norm.normalise(x + x.sin())));
  CHECK(pre->final_norm());
  CHECK(!post->final_norm());
}

TEST_CASE("dropout keeps the expectation") {
  const auto held = std::make_shared<LayerNorm>(LayerNormOptions(), 1000);
  auto& norm = *held;
  initialise(norm, 1);
  const auto pre = residuals().make(Choice(residual_catalogue, "pre"));
  torch::manual_seed(5);
  const auto y = pre->join(torch::zeros({100, 1000}), norm, 0.3, true, [](const Tensor& x) { return torch::ones_like(x); });
  // The mean of 1e5 draws that are 0 or 1/0.7 has standard deviation 0.002.
  CHECK(std::abs(y.mean().item<double>() - 1) < 0.01);
  CHECK(y.eq(0).to(torch::kFloat64).mean().item<double>() == Approx(0.3).epsilon(0.03));
}

// Feed-forward networks -----------------------------------------------------------------------------------------------

TEST_CASE("a feed-forward network equals two convolutions of width 1, and knows no positions") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, 6}, "x");
  for (const std::string type : {"relu", "gelu"}) {
    Choice choice(feed_forward_catalogue, type);
    choice.as<PositionWiseOptions>().width = 9;
    auto network = feed_forwards().make(choice, 6);
    fill(*network);
    const auto p = network->named_parameters();
    auto h = torch::conv1d(x.transpose(1, 2), p["inner.weight"].unsqueeze(-1), p["inner.bias"]);
    h = type == "relu" ? h.clamp_min(0) : 0.5 * h * (1 + torch::erf(h / std::sqrt(2.0)));
    const auto expected = torch::conv1d(h, p["outer.weight"].unsqueeze(-1), p["outer.bias"]).transpose(1, 2);
    CHECK(difference(network->feed(x), expected) < 1e-12);
    CHECK(difference(network->feed(x.flip(1)), network->feed(x).flip(1)) < 1e-12);
  }
  CHECK(feed_forwards().make(Choice(feed_forward_catalogue, "relu"), 6)->named_parameters()["inner.weight"].size(0) == 24);
}

// The loss ------------------------------------------------------------------------------------------------------------

TEST_CASE("label smoothing is LibTorch's, summed over tokens, with its gradient") {
  DefaultDtype guard(torch::kFloat64);
  const auto target = torch::tensor({1, 0, 6, 3}, torch::kLong);
  for (const double epsilon : {0.0, 0.1, 0.5}) {
    auto mine = noise({4, 7}, "logits").requires_grad_(), its = mine.detach().clone().requires_grad_();
    const auto loss = smoothed_cross_entropy(mine, target, epsilon);
    const auto expected = F::cross_entropy(its, target, F::CrossEntropyFuncOptions().label_smoothing(epsilon).reduction(torch::kSum));
    CHECK(loss.tokens == 4);
    CHECK(difference(loss.sum, expected) < 1e-12);
    CHECK(difference(loss.nll_sum, F::cross_entropy(its, target, F::CrossEntropyFuncOptions().reduction(torch::kSum))) < 1e-12);
    CHECK(!loss.nll_sum.requires_grad());
    (loss.sum * 3).backward();
    (expected * 3).backward();
    CHECK(difference(mine.grad(), its.grad()) < 1e-12);
  }
}

TEST_CASE("the smoothed loss is least at the smoothed distribution, where it is that distribution's entropy") {
  DefaultDtype guard(torch::kFloat64);
  constexpr double epsilon = 0.1, V = 5;
  const auto target = torch::tensor({2}, torch::kLong);
  auto wanted = torch::full({1, 5}, epsilon / V);
  wanted[0][2] += 1 - epsilon;
  auto logits = wanted.log().add(4).requires_grad_();
  const auto loss = smoothed_cross_entropy(logits, target, epsilon);
  loss.sum.backward();
  CHECK(logits.grad().abs().max().item<double>() < 1e-15);
  CHECK(difference(loss.sum, -(wanted * wanted.log()).sum()) < 1e-12);
}

TEST_CASE("a batch of padding alone has loss 0 and gradients 0") {
  auto logits = torch::zeros({3, 5}).requires_grad_();
  const auto none = torch::empty({0}, torch::kLong);
  const auto loss = smoothed_cross_entropy(logits.index_select(0, none), none, 0.1);
  CHECK(loss.tokens == 0);
  CHECK(loss.sum.item<double>() == 0);
  loss.sum.backward();
  CHECK(logits.grad().abs().max().item<double>() == 0);
  CHECK_THROWS_AS(smoothed_cross_entropy(logits, none, 0.1), ShapeError);
}

}  // namespace headlab
