#include "modules/layer/conformer.h"

#include <cmath>

#include "modules/tensor/relevance.h"
#include "src/spec/dump.h"
#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

namespace {

constexpr int64_t width = 8;

BlockPlace place(const std::string& residual = "pre") {
  BlockPlace made{};
  made.style.width = width;
  made.style.residual.choose(residual);
  made.stack = Stack::enc_self;
  made.parts.attention = small_attention();
  made.parts.feed_forward.as<PositionWiseOptions>().width = 12;
  made.memory_width = width;
  return made;
}

std::shared_ptr<Conformer> conformer(int64_t kernel, const BlockPlace& where = place()) {
  ConformerOptions options;
  options.kernel = kernel;
  const auto made = std::make_shared<Conformer>(options, where);
  fill(*made);
  made->eval();
  return made;
}

Tensor pass(Conformer& block, const Tensor& x, const Tensor& mask = {}) {
  Forward run;
  StackCall call{.positions = torch::arange(x.size(1)),
                 .self = {},
                 .memory_BSD = {},
                 .cross = {},
                 .memory_positions = {},
                 .state = nullptr,
                 .run = run};
  call.self.key_mask_BS = call.self.query_mask_BT = mask;
  return block.forward(x, call);
}

/// A norm as its parameters say.
Tensor normed(const torch::OrderedDict<std::string, Tensor>& of, const std::string& name, const Tensor& x) {
  return torch::layer_norm(x, {width}, of[name + ".weight"], of[name + ".bias"]);
}

Tensor linear(const torch::OrderedDict<std::string, Tensor>& of, const std::string& name, const Tensor& x) {
  return torch::matmul(x, of[name + ".weight"].t()) + of[name + ".bias"];
}

}  // namespace

TEST_CASE("the convolution over time is a loop over channels, tokens and places", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  for (const int64_t kernel : {1, 3, 7}) {
    const auto convolution = std::make_shared<DepthwiseConvolution>(width, kernel);
    fill(*convolution);
    const auto x = noise({2, 5, width}, "x");
    const auto got = convolution->convolve(x);
    const auto weight = convolution->named_parameters()["weight"], bias = convolution->named_parameters()["bias"];
    auto expected = torch::zeros_like(x);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t t = 0; t < 5; ++t)
        for (int64_t d = 0; d < width; ++d) {
          auto sum = bias[d].item<double>();
          for (int64_t j = 0; j < kernel; ++j)
            if (const auto at = t + j - (kernel - 1) / 2; at >= 0 && at < 5)
              sum += weight[d][0][j].item<double>() * x[b][at][d].item<double>();
          expected[b][t][d] = sum;
        }
    CHECK(difference(got, expected) < 1e-12);
  }
}

TEST_CASE("a conformer is two half feed-forwards around attention and convolution, then a norm", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto block = conformer(3);
  const auto of = block->named_parameters();
  const auto feed = [&](const std::string& name, const Tensor& x) {
    return linear(of, name + ".outer", torch::relu(linear(of, name + ".inner", x)));
  };
  auto x = noise({2, 6, width}, "x");
  const auto got = pass(*block, x);
  x = x + 0.5 * feed("feed_forward", normed(of, "feed_forward_norm", x));
  auto attention = make_attention(small_attention(), width);
  for (auto& item : attention->named_parameters()) item.value().copy_(of["self_attention." + item.key()]);
  Forward run;
  x = x + attention->forward(call_of(normed(of, "self_attention_norm", x), run));
  const auto halves = linear(of, "convolution.inner", normed(of, "convolution_norm", x)).chunk(2, -1);
  const auto convolved =
      torch::conv1d((halves[0] * torch::sigmoid(halves[1])).transpose(1, 2), of["convolution.depthwise.weight"],
                    of["convolution.depthwise.bias"], 1, 1, 1, width)
          .transpose(1, 2);
  const auto h = normed(of, "convolution.norm", convolved);
  x = x + linear(of, "convolution.outer", h * torch::sigmoid(h));
  x = x + 0.5 * feed("feed_forward_after", normed(of, "feed_forward_after_norm", x));
  CHECK(difference(got, normed(of, "norm", x)) < 1e-12);
}

TEST_CASE("the convolution of a conformer takes padding for zeros, whatever stands there", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto block = conformer(15);
  const auto x = noise({3, 9, width}, "x");
  const auto mask = mask_of({9, 4, 7}, 9);
  const auto together = pass(*block, x, mask);
  const std::vector<int64_t> lengths{9, 4, 7};
  for (int64_t b = 0; b < 3; ++b) {
    const auto length = lengths[static_cast<std::size_t>(b)];
    const auto alone = pass(*block, x.narrow(0, b, 1).narrow(1, 0, length));
    CHECK(difference(together.narrow(0, b, 1).narrow(1, 0, length), alone) < 1e-12);
  }
  CHECK(difference(pass(*block, x).narrow(0, 1, 1).narrow(1, 0, 4), together.narrow(0, 1, 1).narrow(1, 0, 4)) > 1e-4);
}

TEST_CASE("what a token says depends on tokens of both sides, as far as attention and kernel reach", "[paper-30]") {
  DefaultDtype guard(torch::kFloat64);
  auto convolution = std::make_shared<ConvolutionModule>(place().style, 5);
  fill(*convolution);
  auto x = noise({1, 9, width}, "x").requires_grad_();
  const auto gradient =
      torch::autograd::grad({convolution->forward(x, {})[0][4].sum()}, {x}).front().abs().sum(-1).squeeze(0);
  for (int64_t t = 0; t < 9; ++t) CHECK((gradient[t].item<double>() > 0) == (std::abs(t - 4) <= 2));
}

TEST_CASE("a conformer is refused where a text is read causally, and an even kernel always", "[paper-30]") {
  auto decoder = small_decoder_only();
  decoder.decoder.block.choose("conformer");
  Problems problems;
  decoder.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "decoder.block");
  CHECK(problems.found[0].message ==
        "conformer sees what follows a token; a decoder must not. Use it in an encoder: encoder_only, encoder_decoder");
  const auto model = make_model(model_choice("decoder_only", decoder));
  CHECK_THROWS_AS(logits_of(*model, small_batch()), ShapeError);
  ConformerOptions even;
  even.kernel = 4;
  Problems of_kernel;
  even.rules(of_kernel);
  REQUIRE(of_kernel.found.size() == 1);
  CHECK(of_kernel.found[0].message == "expected an odd number, so that a token stands in the middle; got 4");
  auto crossed = place();
  crossed.parts.cross_attention = small_attention();
  CHECK_THROWS_AS(conformer(3, crossed), ShapeError);
}

TEST_CASE("the work and the parameters of a conformer are those of its matrices", "[paper-30]") {
  const int64_t D = width, F = 12, k = 7, T = 11;
  const auto block = conformer(k);
  const auto feed = 2 * D * F, attention = 4 * D * D, convolution = 3 * D * D + k * D;
  CHECK(block->flops(T, 0, false) == 2 * T * (2 * feed + attention + convolution) + 4 * T * T * D);
  int64_t parameters = 0;
  for (const auto& parameter : block->parameters()) parameters += parameter.numel();
  const auto norms = 6 * 2 * D;  // four sublayers, the convolution's and the last
  CHECK(parameters == 2 * (feed + F + D) + attention + 4 * D + convolution + 4 * D + norms);
  auto without = place();
  without.parts.feed_forward.choose("none");
  CHECK(conformer(k, without)->flops(T, 0, false) == 2 * T * (attention + convolution) + 4 * T * T * D);
}

TEST_CASE("relevance refuses a conformer by the name of its convolution", "[paper-30]") {
  const auto block = conformer(3);
  auto x = noise({1, 4, width}, "x").requires_grad_();
  relevance::Guard flows;
  const auto found = relevance::uncovered(pass(*block, x));
  REQUIRE(!found.empty());
  bool named = false;
  for (const auto& one : found) named = named || one.operation.find("Convolution") != std::string::npos;
  CHECK(named);
}
