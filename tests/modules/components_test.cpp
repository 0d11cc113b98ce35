// The plain components against closed forms: positions, embeddings, norms, feed-forward networks, the loss.
#include <torch/nn/functional/loss.h>

#include <cmath>

#include "modules/attention/position/rope.h"
#include "modules/embedding/embedding.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/layer/residual.h"
#include "modules/loss/cross_entropy.h"
#include "modules/norm/norm.h"
#include "modules/tensor/dropout.h"
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
        const auto angle =
            static_cast<double>(p) * std::pow(500.0, -static_cast<double>(c - c % 2) / static_cast<double>(D));
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

TEST_CASE("sinusoidal positions lie in [-1, 1], and the first row is 0, 1, 0, 1 ...") {
  for (const int64_t D : {1, 2, 7, 64}) {
    const auto table = Sinusoidal({}, D, 3000).at(torch::arange(3000));
    CHECK(table.abs().max().item<double>() <= 1);
    for (int64_t c = 0; c < D; ++c) CHECK(table[0][c].item<double>() == c % 2);
  }
}

TEST_CASE("learned positions are rows of a table that starts as noise, and learn where they stand") {
  LearnedPositionOptions options;
  const auto positions = std::make_shared<LearnedPositions>(options, 64, 500);
  initialise(*positions, 1);
  const auto weight = positions->named_parameters()["weight"];
  CHECK(shape_text(weight) == "[500, 64]");
  // 32000 numbers: a sample variance is off by sqrt(2 / 32000) = 0.8 %.
  CHECK(weight.var().item<double>() == Approx(1.0 / 64).epsilon(0.04));
  options.deviation = 0.02;
  const auto small = std::make_shared<LearnedPositions>(options, 64, 500);
  initialise(*small, 1);
  CHECK(small->named_parameters()["weight"].std().item<double>() == Approx(0.02).epsilon(0.02));
  const auto at = torch::tensor({4, 0, 499}, torch::kLong);
  CHECK(torch::equal(positions->at(at), weight.index_select(0, at)));
  const auto each = positions->at(torch::stack({at, at.flip(0)}));
  CHECK(torch::equal(each[1], positions->at(at.flip(0))));
  each.sum().backward();
  CHECK(weight.grad().sum(-1)[4].item<double>() == 128);
  CHECK(weight.grad().sum().item<double>() == 2 * 3 * 64);
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

TEST_CASE("too-long: learned positions take no text longer than their table, and no kernel runs") {
  EmbeddingOptions options;
  options.max_length = 5;
  options.position.choose("learned");
  const auto embed = std::make_shared<Embed>(options, 6, 0.0);
  const auto table = std::make_shared<TokenTable>(11, 6);
  fill(*embed);
  fill(*table);
  const auto ids = random_ids({2, 6}, 11, "ids"), positions = torch::arange(6);
  const auto message = "embedding: expected at most 5 tokens, got 6; raise model.embedding.max_length";
  CHECK(operators_of([&] { CHECK_THROWS_WITH(embed->forward(*table, ids, positions), message); }).empty());
  CHECK_THROWS_WITH(embed->forward(*table, ids.narrow(1, 0, 1), positions.narrow(0, 5, 1), 5), message);
  const auto last = embed->forward(*table, ids.narrow(1, 0, 1), positions.narrow(0, 4, 1), 4);
  const auto row = embed->named_parameters()["position.weight"][4] + table->embed(ids.narrow(1, 0, 1), true)[0][0];
  CHECK(difference(last[0][0], row) < 1e-6);
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

TEST_CASE("RMS norm is gamma x / sqrt(mean of squares + epsilon), and gamma = that root restores the input") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  RmsNormOptions options;
  options.epsilon = 0.1;
  const auto norm = std::make_shared<RmsNorm>(options, 7);
  fill(*norm);
  const auto gamma = norm->named_parameters()["weight"];
  const auto x = noise({2, 3, 7}, "x") * 3 + 2;
  const auto y = norm->normalise(x);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 3; ++t) {
      double squares = 0;
      for (int64_t d = 0; d < 7; ++d) squares += x[b][t][d].item<double>() * x[b][t][d].item<double>();
      for (int64_t d = 0; d < 7; ++d)
        CHECK(
            y[b][t][d].item<double>() ==
            Approx(gamma[d].item<double>() * x[b][t][d].item<double>() / std::sqrt(squares / 7 + 0.1)).epsilon(1e-12));
    }
  gamma.fill_(std::sqrt(x[1][2].square().mean().item<double>() + 0.1));
  CHECK(difference(norm->normalise(x[1][2]), x[1][2]) < 1e-12);
  options.affine = false;
  const auto bare = std::make_shared<RmsNorm>(options, 7);
  CHECK(bare->parameters().empty());
  CHECK(difference(bare->normalise(x).square().mean(-1), x.square().mean(-1) / (x.square().mean(-1) + 0.1)) < 1e-12);
  // The direction of x stays: a positive factor changes nothing but what epsilon adds.
  RmsNormOptions fine;
  const auto sharp = std::make_shared<RmsNorm>(fine, 7);
  initialise(*sharp, 1);
  CHECK(difference(sharp->normalise(x * 50), sharp->normalise(x)) < 1e-6);
}

TEST_CASE("a min-max norm goes from 0 to 1, and gamma = max - min + epsilon with beta = min restores the input") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  MinMaxOptions options;
  options.epsilon = 0.1;
  const auto norm = std::make_shared<MinMaxNorm>(options, 7);
  initialise(*norm, 1);
  const auto x = noise({4, 3, 7}, "x") * 3 - 5;
  const auto least = std::get<0>(x.min(-1, true)), largest = std::get<0>(x.max(-1, true));
  const auto y = norm->normalise(x);
  CHECK(difference(y, (x - least) / (largest - least + 0.1)) < 1e-14);
  CHECK(y.min().item<double>() == 0);
  CHECK(difference(y.amax(-1, true), (largest - least) / (largest - least + 0.1)) < 1e-14);
  norm->named_parameters()["weight"].fill_((largest - least + 0.1)[2][1].item<double>());
  norm->named_parameters()["bias"].fill_(least[2][1].item<double>());
  CHECK(difference(norm->normalise(x[2][1]), x[2][1]) < 1e-12);
  options.affine = false;
  const auto bare = std::make_shared<MinMaxNorm>(options, 7);
  CHECK(bare->parameters().empty());
  CHECK(torch::equal(bare->normalise(x), y));
}

TEST_CASE("epsilon bounds the gain of every norm for inputs that hardly differ") {
  DefaultDtype guard(torch::kFloat64);
  const auto gain = [](Norm& norm, const Tensor& at) {
    initialise(norm, 1);
    auto moved = at.clone();
    moved[2] += 1e-9;
    return (norm.normalise(moved) - norm.normalise(at)).abs().max().item<double>() / 1e-9;
  };
  const auto constant = torch::full({7}, 3.0), zeros = torch::zeros({7});
  const auto layer = std::make_shared<LayerNorm>(LayerNormOptions(), 7);
  const auto rms = std::make_shared<RmsNorm>(RmsNormOptions(), 7);
  const auto min_max = std::make_shared<MinMaxNorm>(MinMaxOptions(), 7);
  CHECK(gain(*layer, constant) <= 1 / std::sqrt(1e-5));
  CHECK(gain(*rms, zeros) <= 1 / std::sqrt(1e-6));
  CHECK(gain(*min_max, constant) <= 1 / 1e-5);
  CHECK(layer->normalise(constant).abs().max().item<double>() == 0);
  CHECK(rms->normalise(zeros).abs().max().item<double>() == 0);
  CHECK(min_max->normalise(constant).abs().max().item<double>() == 0);
}

TEST_CASE("pre-norm adds f(norm(x)), post-norm norms x + f(x), sandwich adds norm(f(norm(x)))") {
  DefaultDtype guard(torch::kFloat64);
  SublayerNorms both{std::make_shared<LayerNorm>(LayerNormOptions(), 6),
                     std::make_shared<LayerNorm>(LayerNormOptions(), 6)};
  fill(*both.norm, 0.2);
  fill(*both.after, 0.6);
  auto& norm = *both.norm;
  const auto x = noise({2, 3, 6}, "x");
  const auto f = [](const Tensor& y) { return y.sin(); };
  const auto pre = residuals().make(Choice(residual_catalogue, "pre")),
             post = residuals().make(Choice(residual_catalogue, "post"));
  const auto sandwich = residuals().make(Choice(residual_catalogue, "sandwich"));
  const SublayerDropout dropout{0.5, "element"};
  Forward run;
  CHECK(torch::equal(pre->join(x, both, dropout, false, f, run), x + norm.normalise(x).sin()));
  CHECK(torch::equal(post->join(x, both, dropout, false, f, run), norm.normalise(x + x.sin())));
  CHECK(torch::equal(sandwich->join(x, both, dropout, false, f, run),
                     x + both.after->normalise(norm.normalise(x).sin())));
  CHECK(difference(both.after->normalise(x), norm.normalise(x)) > 0.01);
  CHECK(pre->final_norm());
  CHECK(!post->final_norm());
  CHECK(sandwich->final_norm());
  CHECK(sandwich->has_second_norm());
  CHECK(!pre->has_second_norm());
}

TEST_CASE("dropout keeps the expectation and the rate, for each kind and place") {
  constexpr double p = 0.3;
  SublayerNorms none{std::make_shared<NoNorm>(NoOptions(), 50), std::make_shared<NoNorm>(NoOptions(), 50)};
  const auto ones = [](const Tensor& x) { return torch::ones_like(x); };
  torch::manual_seed(5);
  for (const auto& kind : dropout_kinds()) {
    // Numbers that fall together count once: 200 x 40 x 50 draws, 200 x 40, 200 x 50. A mean of n draws that are 0 or
    // 1/0.7 has the deviation sqrt(0.3 / 0.7 / n), a share of zeros sqrt(0.3 * 0.7 / n); five of each.
    const double n = kind == "element" ? 400000 : kind == "token" ? 8000 : 10000;
    for (const std::string place : {"pre", "post", "sandwich"}) {
      INFO(kind << ", " << place);
      const auto residual = residuals().make(Choice(residual_catalogue, place));
      Forward run;
      const auto y = residual->join(torch::zeros({200, 40, 50}), none, {p, kind}, true, ones, run);
      CHECK(std::abs(y.mean().item<double>() - 1) < 5 * std::sqrt(p / (1 - p) / n));
      CHECK(std::abs(y.eq(0).to(torch::kFloat64).mean().item<double>() - p) < 5 * std::sqrt(p * (1 - p) / n));
      CHECK((y.eq(0).logical_or((y - 1 / (1 - p)).abs() < 1e-6)).all().item<bool>());
      // What falls together is all 0 or all kept.
      const auto first = kind == "token" ? y.narrow(-1, 0, 1) : kind == "channel" ? y.narrow(-2, 0, 1) : y;
      CHECK(torch::equal(y, first.expand_as(y)));
      CHECK(y.eq(0).any().item<bool>());
    }
  }
}

TEST_CASE("dropout of rate 0, and in evaluation, is the identity bit for bit") {
  const auto x = noise({3, 4, 5}, "x");
  for (const auto& kind : dropout_kinds()) {
    CHECK(torch::equal(drop(x, 0.0, true, kind), x));
    CHECK(torch::equal(drop(x, 0.9, false, kind), x));
    CHECK(!torch::equal(drop(x, 0.5, true, kind), x));
  }
  CHECK_THROWS_AS(drop(x, 0.5, true, "none of them"), std::logic_error);
}

TEST_CASE("dropout sends gradients to what was kept alone") {
  torch::manual_seed(2);
  for (const auto& kind : dropout_kinds()) {
    auto x = noise({4, 6, 8}, "x").requires_grad_();
    const auto y = drop(x, 0.5, true, kind);
    y.sum().backward();
    CHECK(difference(x.grad(), y.detach().ne(0).to(torch::kFloat32) * 2) == 0);
  }
}

TEST_CASE("embeddings have a dropout of their own, or the model's") {
  EmbeddingOptions options;
  const auto table = std::make_shared<TokenTable>(11, 64);
  fill(*table);
  const auto ids = random_ids({20, 30}, 11, "ids"), positions = torch::arange(30);
  const auto zeros = [&](double of_model) {
    torch::manual_seed(4);
    const auto embed = std::make_shared<Embed>(options, 64, of_model);
    return embed->forward(*table, ids, positions).eq(0).to(torch::kFloat64).mean().item<double>();
  };
  // 38400 draws: the share of zeros has a deviation of at most 0.0026.
  CHECK(std::abs(zeros(0.3) - 0.3) < 0.013);
  options.dropout = 0.6;
  CHECK(std::abs(zeros(0.3) - 0.6) < 0.013);
  options.dropout = 0.0;
  CHECK(zeros(0.3) == 0);
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
  CHECK(feed_forwards().make(Choice(feed_forward_catalogue, "relu"), 6)->named_parameters()["inner.weight"].size(0) ==
        24);
}

TEST_CASE("SwiGLU equals gated convolutions of width 1, and knows no positions") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, 6}, "x");
  for (const bool bias : {false, true}) {
    Choice choice(feed_forward_catalogue, "swiglu");
    choice.as<SwiGluOptions>().width = 9;
    choice.as<SwiGluOptions>().bias = bias;
    auto network = feed_forwards().make(choice, 6);
    fill(*network);
    const auto p = network->named_parameters();
    CHECK(p.size() == (bias ? 6 : 3));
    const auto convolve = [&](const Tensor& of, const std::string& layer) {
      return torch::conv1d(of, p[layer + ".weight"].unsqueeze(-1), bias ? p[layer + ".bias"] : Tensor());
    };
    const auto a = convolve(x.transpose(1, 2), "gate");
    const auto h = a / (1 + torch::exp(-a)) * convolve(x.transpose(1, 2), "inner");
    CHECK(difference(network->feed(x), convolve(h, "outer").transpose(1, 2)) < 1e-12);
    CHECK(difference(network->feed(x.flip(1)), network->feed(x).flip(1)) < 1e-12);
  }
  // Its default has no biases, and the parameters of two layers of 4 D.
  const auto network = feed_forwards().make(Choice(feed_forward_catalogue, "swiglu"), 12);
  int64_t count = 0;
  for (const auto& parameter : network->parameters()) count += parameter.numel();
  CHECK(count == 2 * 4 * 12 * 12);
}

TEST_CASE("a layer without a feed-forward network is its attention alone, with no parameters more") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 5, small_width}, "x");
  for (const std::string residual : {"pre", "post", "sandwich"}) {
    LayerStyle style;
    style.width = small_width;
    style.residual.choose(residual);
    LayerParts parts;
    parts.attention = small_attention();
    parts.feed_forward.choose("none");
    const auto layer = std::make_shared<Layer>(
        NoOptions(), BlockPlace{style, Stack::dec_self, 0, parts, small_width, std::nullopt, std::nullopt});
    fill(*layer);
    layer->eval();
    for (const auto& item : layer->named_parameters()) CHECK(item.key().rfind("self_attention", 0) == 0);
    Forward run;
    StackCall call{.positions = torch::arange(5),
                   .self = causal(),
                   .memory_BSD = {},
                   .cross = {},
                   .memory_positions = {},
                   .state = nullptr,
                   .run = run};
    const auto children = layer->named_children();
    const auto attention = std::dynamic_pointer_cast<Attention>(children["self_attention"]);
    const SublayerNorms norms{
        std::dynamic_pointer_cast<Norm>(children["self_attention_norm"]),
        residual == "sandwich" ? std::dynamic_pointer_cast<Norm>(children["self_attention_norm_after"]) : nullptr};
    const auto expected =
        residuals()
            .make(style.residual)
            ->join(
                x, norms, {}, false, [&](const Tensor& of) { return attention->forward(call_of(of, run, causal())); },
                run);
    CHECK(torch::equal(layer->forward(x, call), expected));
    CHECK(layer->flops(5, 0, true) == attention->flops(5, 5, true));
  }
}

TEST_CASE("a feed-forward network drops inner units at its rate, in training alone") {
  for (const std::string type : {"relu", "gelu", "swiglu"}) {
    Choice choice(feed_forward_catalogue, type);
    choice.as<PositionWiseOptions>().width = 2000;
    choice.as<PositionWiseOptions>().dropout = 0.25;
    auto network = feed_forwards().make(choice, 3);
    initialise(*network, 1);
    torch::NoGradGuard no_grad;
    // With positive rows, inner units are all alive; an outer layer that sums the units of one half counts what is
    // left.
    for (auto& item : network->named_parameters())
      item.value().fill_(item.key().find("weight") != std::string::npos ? 1.0 : 0.0);
    const auto x = torch::ones({1, 200, 3});
    network->eval();
    const auto full = network->feed(x);
    CHECK(torch::equal(network->feed(x), full));
    network->train();
    torch::manual_seed(3);
    const auto kept = network->feed(x) / full;
    // 200 sums of 2000 units that are 0 or 4/3: mean 1, deviation of a sum sqrt(1/3 / 2000) = 0.0129, of their mean
    // 0.00091.
    CHECK(std::abs(kept.select(-1, 0).mean().item<double>() - 1) < 0.0046);
    CHECK(kept.select(-1, 0).std().item<double>() == Approx(0.0129).epsilon(0.25));
  }
}

// The loss ------------------------------------------------------------------------------------------------------------

TEST_CASE("label smoothing is LibTorch's, summed over tokens, with its gradient") {
  DefaultDtype guard(torch::kFloat64);
  const auto target = torch::tensor({1, 0, 6, 3}, torch::kLong);
  for (const double epsilon : {0.0, 0.1, 0.5}) {
    auto mine = noise({4, 7}, "logits").requires_grad_(), its = mine.detach().clone().requires_grad_();
    const auto loss = smoothed_cross_entropy(mine, target, epsilon);
    const auto expected =
        F::cross_entropy(its, target, F::CrossEntropyFuncOptions().label_smoothing(epsilon).reduction(torch::kSum));
    CHECK(loss.tokens == 4);
    CHECK(difference(loss.sum, expected) < 1e-12);
    CHECK(difference(loss.nll_sum, F::cross_entropy(its, target, F::CrossEntropyFuncOptions().reduction(torch::kSum))) <
          1e-12);
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
