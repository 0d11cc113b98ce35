// Values of another width than queries and keys; that the walk with them equals plain loops is in attention_test.cpp.
#include "modules/attention/attention.h"
#include "modules/attention/gate/head_norm.h"
#include "modules/attention/project/standard.h"
#include "modules/model/encoder_decoder.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

AttentionOptions wide(int64_t value_width, int64_t groups = small_heads) {
  auto options = small_attention();
  options.value_width = value_width;
  if (groups != small_heads) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = groups;
  }
  return options;
}

int64_t entries(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace

TEST_CASE("an attention has D H K + D G (K + K_v) + H K_v D weights") {
  constexpr int64_t D = small_width, H = small_heads, K = D / H;
  for (const int64_t V : {1, 2, 5})
    for (const int64_t G : {1, 2, 4}) {
      const auto attention = make_attention(wide(V, G), D);
      CHECK(attention->shape().value_width == V);
      CHECK(entries(*attention) == D * H * K + D * G * (K + V) + H * V * D + H * K + G * (K + V) + D);
      CHECK(attention->cache_numbers() == G * (K + V));
      const auto cross = make_attention(wide(V, G), D, true, std::nullopt, 6);
      CHECK(entries(*cross) == D * H * K + 6 * G * (K + V) + H * V * D + H * K + G * (K + V) + D);
    }
}

TEST_CASE("a cache keeps keys and values each of its width, and nothing more") {
  torch::NoGradGuard no_grad;
  const auto attention = make_attention(wide(5, 2), small_width);
  State state;
  Forward run;
  auto call = call_of(noise({3, 4, small_width}, "x"), run, causal());
  call.state = &state;
  attention->forward(call);
  REQUIRE(state.stored.size() == 2);
  CHECK(shape_text(state.stored[0]) == "[3, 2, 4, 2]");
  CHECK(shape_text(state.stored[1]) == "[3, 2, 4, 5]");
  CHECK(state.stored[0].numel() + state.stored[1].numel() == 3 * 4 * attention->cache_numbers());
}

TEST_CASE("values of another width run in LibTorch's fused kernel, with dropout of weights none does") {
  for (const int64_t V : {1, 5}) {
    auto options = wide(V);
    options.weigh.dropout = 0.5;
    auto attention = make_attention(options, small_width);
    Forward run;
    const Site site{Stack::dec_self, 0};
    const auto x = noise({2, 5, small_width}, "x");
    const auto ran = [&] {
      return operators_of([&] { attention->forward(call_of(x, run, causal())).sum().backward(); });
    };
    auto eval = ran();
    CHECK(attention->fusable(site, run));
    CHECK(eval.count("aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
    CHECK(eval.count("aten::_scaled_dot_product_attention_math") == 0);
    attention->train();
    auto train = ran();
    CHECK(!attention->fusable(site, run));
    CHECK(train.count("aten::_scaled_dot_product_flash_attention_for_cpu") == 0);
  }
}

TEST_CASE("gradients through values of another width are those of plain products") {
  DefaultDtype guard(torch::kFloat64);
  LambdaTap weights([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
  for (const int64_t V : {1, 5}) {
    auto attention = make_attention(wide(V, 2), small_width);
    const auto x = noise({2, 5, small_width}, "x"), loss = noise({2, 5, small_width}, "loss");
    std::map<std::string, Tensor> fast;
    for (const bool looked : {false, true}) {
      attention->zero_grad();
      Forward run;
      if (looked) run.taps = {&weights};
      (attention->forward(call_of(x, run, causal())) * loss).sum().backward();
      for (const auto& item : attention->named_parameters()) {
        if (looked)
          CHECK(difference(item.value().grad(), fast.at(item.key())) < 1e-12);
        else
          fast[item.key()] = item.value().grad().clone();
      }
    }
  }
}

TEST_CASE("equal widths, said or left out, are drawn alike; another value width has its own fan") {
  auto said = std::make_shared<Attention>(wide(2), small_width, small_width, false);
  auto left_out = std::make_shared<Attention>(small_attention(), small_width, small_width, false);
  initialise(*said, 3);
  initialise(*left_out, 3);
  for (const auto& item : left_out->named_parameters())
    CHECK(torch::equal(item.value(), said->named_parameters()[item.key()]));
  // Xavier: uniform of variance 2 / (D + H K) for queries and keys, 2 / (D + H K_v) for values.
  constexpr int64_t D = 64, H = 4, K = 16, V = 48;
  AttentionOptions options;
  options.heads = H;
  options.value_width = V;
  for (const bool cross : {false, true}) {
    auto attention = std::make_shared<Attention>(options, D, D, cross);
    initialise(*attention, 1);
    const auto p = attention->named_parameters();
    const auto matrix = cross ? p["project.memory_weight"] : p["project.weight"];
    const auto values = matrix.narrow(0, matrix.size(0) - H * V, H * V), keys = matrix.narrow(0, 0, H * K);
    CHECK(keys.abs().max().item<double>() <= std::sqrt(6.0 / (D + H * K)));
    // 12288 entries: a sample variance of uniform numbers is off by sqrt(0.8 / 12288) = 0.8 %; 4096 for keys: 1.4 %.
    CHECK(values.abs().max().item<double>() <= std::sqrt(6.0 / (D + H * V)));
    CHECK(values.var().item<double>() == Approx(2.0 / (D + H * V)).epsilon(0.04));
    CHECK(keys.var().item<double>() == Approx(2.0 / (D + H * K)).epsilon(0.07));
  }
}

TEST_CASE("one head over the whole width is single-head attention") {
  DefaultDtype guard(torch::kFloat64);
  AttentionOptions options;
  options.heads = 1;
  options.value_width = 5;
  const auto attention = make_attention(options, small_width);
  const auto p = attention->named_parameters();
  const auto x = noise({2, 6, small_width}, "x");
  const auto product = torch::nn::functional::linear(x, p["project.weight"], p["project.bias"]);
  const auto q = product.slice(-1, 0, 8), k = product.slice(-1, 8, 16), v = product.slice(-1, 16, 21);
  const auto weights = torch::softmax(torch::matmul(q, k.transpose(1, 2)) / std::sqrt(8.0), -1);
  const auto expected = torch::nn::functional::linear(torch::matmul(weights, v), p["mix.weight"], p["mix.bias"]);
  Forward run;
  CHECK(difference(attention->forward(call_of(x, run)), expected) < 1e-12);
}

}  // namespace headlab
