// 1909.00188: output capsules of the heads beside W_O, or in its place.
#include "modules/attention/mix/capsules.h"

#include "modules/attention/attention.h"
#include "modules/attention/mix/concatenate.h"
#include "tests/catch.h"
#include "tests/modules/attention/mix/routing_by_loops.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t of_width = 8, of_heads = 4, value_width = 3;

Shape capsule_shape(int64_t heads = of_heads, int64_t width = value_width, int64_t d_model = of_width) {
  auto shape = std::make_shared<AttentionShape>();
  for (int64_t h = 0; h < heads; ++h) shape->heads.push_back(h);
  shape->original_heads = heads;
  shape->value_width = width;
  shape->width = d_model;
  return shape;
}

template <class OptionsType>
OptionsType capsule_options(const std::string& merge = "add", std::optional<int64_t> capsules = {},
                            std::optional<int64_t> width = {}) {
  OptionsType options;
  options.merge = merge;
  options.capsules = capsules;
  options.width = width;
  return options;
}

int64_t numbers_in(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

Tensor attended(Attention& attention, const Tensor& x, std::map<Stack, Tensor> scale = {}) {
  const torch::NoGradGuard no_grad;
  Forward run;
  run.scale = std::move(scale);
  return attention.forward(call_of(x, run, causal()));
}

}  // namespace

TEST_CASE("capsules by loops: votes, routing, and the sum with the usual output", "[paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const int64_t B = 2, T = 3;
  const auto z = noise({B, of_heads, T, value_width}, "z");
  const auto check = [&](Capsules& mix, int64_t J, int64_t C,
                         const std::function<reference::Found(const Tensor&)>& route) {
    const auto parameters = mix.named_parameters();
    const auto y = mix.mix(z, {});
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0; t < T; ++t) {
        auto votes = torch::zeros({of_heads, J, C}, torch::kFloat64);
        for (int64_t h = 0; h < of_heads; ++h)
          for (int64_t j = 0; j < J; ++j)
            for (int64_t c = 0; c < C; ++c)
              for (int64_t k = 0; k < value_width; ++k)
                votes[h][j][c] +=
                    reference::at(z, {b, h, t, k}) * reference::at(parameters["votes"], {h, k, j * C + c});
        auto expected = torch::matmul(parameters["output"], route(votes).capsules_JC.flatten());
        if (parameters.contains("weight"))
          expected = expected + torch::matmul(parameters["weight"], z[b].select(1, t).flatten());
        if (parameters.contains("bias")) expected = expected + parameters["bias"];
        CHECK(difference(y[b][t], expected) < 1e-11);
      }
  };
  for (const std::string merge : {"add", "replace"})
    for (const auto& [J, C] : std::vector<std::pair<int64_t, int64_t>>{{of_heads, value_width}, {2, 5}, {1, 1}}) {
      CAPTURE(merge, J, C);
      for (const bool squash : {true, false}) {
        auto options = capsule_options<DynamicCapsulesOptions>(merge, J, C);
        options.squash = squash;
        options.bias = squash;
        const auto mix = std::make_shared<DynamicCapsules>(options, capsule_shape());
        fill(*mix);
        check(*mix, J, C, [&](const Tensor& votes) { return reference::dynamic_routing(votes, 3, false, squash); });
      }
      const auto mix = std::make_shared<EmCapsules>(capsule_options<EmCapsulesOptions>(merge, J, C), capsule_shape());
      fill(*mix);
      const auto parameters = mix->named_parameters();
      check(*mix, J, C, [&](const Tensor& votes) {
        return reference::em_routing(
            votes, 3, 1e-2, [](int64_t round) { return 0.1 * static_cast<double>(round); },
            parameters["routing.activate"], parameters["routing.cost"], static_cast<double>(C), 0);
      });
    }
}

TEST_CASE("one round without squash, in W_O's place, with W_c = J I, is concatenation times the reshaped votes",
          "[paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  constexpr int64_t heads = 8, K = 16, J = 4, C = 16, D = J * C;
  auto options = capsule_options<DynamicCapsulesOptions>("replace", J, C);
  options.iterations = 1;
  options.squash = false;
  options.bias = false;
  const auto mix = std::make_shared<DynamicCapsules>(options, capsule_shape(heads, K, D));
  fill(*mix);
  ConcatenateOptions unbiased;
  unbiased.bias = false;
  Concatenate plain(unbiased, capsule_shape(heads, K, D));
  mix->named_parameters()["output"].copy_(J * torch::eye(D));
  plain.named_parameters()["weight"].copy_(mix->named_parameters()["votes"].flatten(0, 1).t());
  const auto z = noise({2, heads, 5, K}, "z");
  CHECK(difference(mix->mix(z, {}), plain.mix(z, {})) < 1e-13);
}

TEST_CASE("capsules have H J K C + J C D parameters more than W_O and its bias", "[paper-45]") {
  constexpr int64_t heads = 8, K = 8, D = 64;
  const auto plain = numbers_in(Concatenate({}, capsule_shape(heads, K, D)));
  const auto shape = capsule_shape(heads, K, D);
  const DynamicCapsules usual({}, shape);  // J = heads, C = K
  CHECK(numbers_in(usual) == plain + heads * heads * K * K + heads * K * D);
  const DynamicCapsules few(capsule_options<DynamicCapsulesOptions>("add", 5, 3), shape);
  CHECK(numbers_in(few) == plain + heads * 5 * K * 3 + 5 * 3 * D);
  const DynamicCapsules alone(capsule_options<DynamicCapsulesOptions>("replace"), shape);
  CHECK(numbers_in(alone) == D + heads * heads * K * K + heads * K * D);
  CHECK(numbers_in(EmCapsules({}, shape)) == numbers_in(usual) + 2 * heads);
  // W_O, votes and W_c, then 2 x 3 - 1 (3 x 3 - 1 for EM) sums over the votes' numbers
  CHECK(usual.flops(10, heads) ==
        2 * 10 * (heads * K * D + heads * K * heads * K + heads * K * D + 5 * heads * heads * K));
  CHECK(EmCapsules({}, shape).flops(10, heads) ==
        2 * 10 * (heads * K * D + heads * K * heads * K + heads * K * D + 8 * heads * heads * K));
}

TEST_CASE("with W_c = 0 capsules leave the usual output as it is", "[paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  for (const std::string type : {"dynamic_capsules", "em_capsules"}) {
    auto options = small_attention();
    const auto plain = make_attention(options, small_width);
    options.mix.choose(type);
    const auto attention = make_attention(options, small_width);
    const torch::NoGradGuard no_grad;
    const auto theirs = plain->named_parameters();
    for (auto& item : attention->named_parameters()) {
      if (item.key() == "mix.output") item.value().zero_();
      if (theirs.contains(item.key())) item.value().copy_(theirs[item.key()]);
    }
    CHECK(difference(attended(*attention, x), attended(*plain, x)) < 1e-14);
  }
}

TEST_CASE("a head of zeros is no head to dynamic routing, but moves what EM fits", "[paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  const std::map<Stack, Tensor> without{{Stack::dec_self, torch::tensor({{0.0, 1.0, 0.0, 1.0}})}};
  const auto apart = [&](const std::string& type) {
    auto options = small_attention();
    options.mix.choose(type);
    const auto attention = make_attention(options, small_width);
    const auto masked = attended(*attention, x, without);
    attention->keep({1, 3});
    return difference(attended(*attention, x), masked);
  };
  CHECK(apart("dynamic_capsules") < 1e-14);
  CHECK(apart("em_capsules") > 1e-4);
}

}  // namespace headlab
