// 1904.03100: output capsules that all heads agree on, in place of W_O.
#include "modules/attention/mix/agreement.h"

#include <torch/optim/adam.h>

#include <numeric>

#include "modules/attention/attention.h"
#include "modules/attention/mix/concatenate.h"
#include "tests/catch.h"
#include "tests/modules/attention/mix/routing_by_loops.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

Shape shape_of(int64_t heads, int64_t value_width, int64_t width) {
  auto shape = std::make_shared<AttentionShape>();
  shape->heads.resize(static_cast<std::size_t>(heads));
  std::iota(shape->heads.begin(), shape->heads.end(), 0);
  shape->original_heads = heads;
  shape->value_width = value_width;
  shape->width = width;
  return shape;
}

template <class MixType, class OptionsType>
std::shared_ptr<MixType> filled(const OptionsType& options, const Shape& shape) {
  auto mix = std::make_shared<MixType>(options, shape);
  fill(*mix);
  return mix;
}

DynamicAgreementOptions dynamic(int64_t iterations, std::optional<int64_t> capsules = {},
                                const std::string& input = "tanh") {
  DynamicAgreementOptions options;
  options.iterations = iterations;
  options.capsules = capsules;
  options.input = input;
  return options;
}

constexpr int64_t H = 4, K = 3, D = 8;

/// V_ij of one token [H,K], number by number: [I, J, D/J].
Tensor votes_by_loops(const Agreement& mix, const Tensor& z_HK, int64_t J, double (*act)(double)) {
  const auto parameters = mix.named_parameters();
  const auto &input = parameters["input"], &bias = parameters["input_bias"], &votes = parameters["votes"];
  const auto z = z_HK.flatten();
  auto made = torch::zeros({H, J, D / J}, torch::kFloat64);
  for (int64_t i = 0; i < H; ++i)
    for (int64_t k = 0; k < K; ++k) {
      double omega = reference::at(bias, {i * K + k});
      for (int64_t n = 0; n < H * K; ++n) omega += reference::at(input, {i * K + k, n}) * reference::at(z, {n});
      for (int64_t j = 0; j < J; ++j)
        for (int64_t c = 0; c < D / J; ++c) made[i][j][c] += act(omega) * reference::at(votes, {i, k, j * (D / J) + c});
    }
  return made;
}

}  // namespace

TEST_CASE("agreement is its maps, votes and routing by loops", "[paper-04]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto z = noise({2, H, 3, K}, "z");
  const std::vector<std::pair<std::string, double (*)(double)>> acts{
      {"tanh", [](double x) { return std::tanh(x); }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
      {"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"linear", [](double x) { return x; }}};
  for (const auto& [name, act] : acts)
    for (const int64_t J : {1, 2, 8}) {
      CAPTURE(name, J);
      const auto mix = filled<DynamicAgreement>(dynamic(3, J, name), shape_of(H, K, D));
      EmAgreementOptions options;
      options.capsules = J;
      options.input = name;
      options.temperature = 0.4;
      const auto em = filled<EmAgreement>(options, shape_of(H, K, D));
      const auto y = mix->mix(z, {}), y_em = em->mix(z, {});
      const auto learned = em->named_parameters();
      const auto constant = static_cast<double>(D / J) * (1 + std::log(2 * std::numbers::pi)) / 2;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t t = 0; t < 3; ++t) {
          const auto z_HK = z[b].select(1, t);
          CHECK(difference(y[b][t], reference::dynamic_routing(votes_by_loops(*mix, z_HK, J, act), 3, true, false)
                                        .capsules_JC.flatten()) < 1e-12);
          CHECK(difference(y_em[b][t], reference::em_routing(
                                           votes_by_loops(*em, z_HK, J, act), 3, 1e-6, [](int64_t) { return 0.4; },
                                           learned["routing.activate"], learned["routing.cost"], 1, constant)
                                           .capsules_JC.flatten()) < 1e-10);
        }
    }
}

TEST_CASE("one round of dynamic routing is a linear layer: the mean of what heads vote", "[paper-04]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto z = noise({2, H, 3, K}, "z");
  for (const int64_t J : {1, 4, 8}) {
    const auto mix = filled<DynamicAgreement>(dynamic(1, J), shape_of(H, K, D));
    const auto parameters = mix->named_parameters();
    const auto omega =
        (torch::matmul(z.transpose(1, 2).flatten(2), parameters["input"].t()) + parameters["input_bias"]).tanh();
    CHECK(difference(mix->mix(z, {}),
                     torch::matmul(omega, parameters["votes"].flatten(0, 1)) / static_cast<double>(H)) < 1e-14);
    CHECK(difference(filled<DynamicAgreement>(dynamic(3, J), shape_of(H, K, D))->mix(z, {}), mix->mix(z, {})) >
          (J == 1 ? -1 : 1e-4));
  }
}

TEST_CASE("agreement has D^2 numbers in its votes and D^2 in its maps, where W_O has D^2", "[paper-04]") {
  constexpr int64_t width = 64, heads = 8;
  const auto shape = shape_of(heads, width / heads, width);
  for (const int64_t capsules : {1, 8, 64}) {
    const DynamicAgreement mix(dynamic(3, capsules), shape);
    const auto parameters = mix.named_parameters();
    CHECK(parameters["votes"].numel() == width * width);
    CHECK(parameters["input"].numel() == width * width);
    CHECK(parameters["input_bias"].numel() == width);
    CHECK(parameters.size() == 3);
    // Products of matrices, and sums over heads or numbers of a capsule in 2 x 3 - 1 of the rounds' steps.
    CHECK(mix.flops(10, heads) == 10 * (2 * 2 * width * width + 2 * 5 * heads * width));
  }
  EmAgreementOptions options;
  options.capsules = 16;
  options.bias = false;
  const EmAgreement em(options, shape);
  int64_t numbers = 0;
  for (const auto& parameter : em.parameters()) numbers += parameter.numel();
  CHECK(numbers == 2 * width * width + 2 * 16);
  CHECK(em.flops(10, heads) == 10 * (2 * 2 * width * width + 2 * 8 * heads * width));
}

TEST_CASE("all input capsules stay when heads go, each without the rows of those heads", "[paper-04]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const std::string type : {"dynamic_agreement", "em_agreement"}) {
    auto options = small_attention();
    options.mix.choose(type);
    const auto attention = make_attention(options, small_width);
    const auto before = attention->named_parameters()["mix.input"].clone();
    attention->keep({1, 3});
    const auto parameters = attention->named_parameters();
    CHECK(parameters["mix.votes"].size(0) == small_heads);
    CHECK(torch::equal(parameters["mix.input"], before.index_select(1, torch::tensor({2, 3, 6, 7}))));
  }
}

TEST_CASE("output capsules divide the width of the model", "[paper-04]") {
  for (const std::string type : {"dynamic_agreement", "em_agreement"}) {
    auto options = small_attention();
    options.mix.choose(type);
    const auto problems_of = [&](std::optional<int64_t> capsules) {
      dynamic_cast<AgreementOptions&>(options.mix.options()).capsules = capsules;
      Problems problems;
      attention_rules(options, small_width, false, "attention", problems);
      return problems.found;
    };
    CHECK(problems_of(std::nullopt).empty());
    CHECK(problems_of(8).empty());
    const auto found = problems_of(3);
    REQUIRE(found.size() == 1);
    CHECK(found[0].field == "attention.mix.capsules");
    CHECK(found[0].message == "expected a number of output capsules that divides d_model (8), got 3");
    CHECK_THROWS_AS(make_attention(options, small_width), ShapeError);
  }
}

namespace {

/// Eight heads of which five, others at each token, see one signal with a little noise, and three see noise alone.
struct Signal {
  Tensor z_BHTK, signal_BTD;
};
Signal signal_and_outliers(int64_t tokens, double deviation, at::Generator generator) {
  const auto normal = [&](at::IntArrayRef shape) { return torch::empty(shape).normal_(0, 1, generator); };
  const auto signal = normal({1, tokens, 8});
  const auto order = torch::empty({1, 8, tokens, 1}).uniform_(0, 1, generator).argsort(int64_t{1}, false);
  return {torch::where(order.lt(3), deviation * normal({1, 8, tokens, 8}),
                       signal.unsqueeze(1) + 0.1 * normal({1, 8, tokens, 8})),
          signal};
}

/// Mean square of what is left after 1000 steps that learn to find the signal, on tokens of their own.
double left_after_learning(Mix& mix, uint64_t seed, double deviation) {
  initialise(mix, seed);
  torch::optim::Adam adam(mix.parameters(), torch::optim::AdamOptions(0.01));
  const auto generator = named_generator(seed, "signals");
  for (int step = 0; step < 1000; ++step) {
    const auto batch = signal_and_outliers(128, deviation, generator);
    adam.zero_grad();
    (mix.mix(batch.z_BHTK, {}) - batch.signal_BTD).square().mean().backward();
    adam.step();
  }
  const torch::NoGradGuard no_grad;
  const auto test = signal_and_outliers(4000, deviation, named_generator(seed, "test"));
  return (mix.mix(test.z_BHTK, {}) - test.signal_BTD).square().mean().item<double>();
}

}  // namespace

TEST_CASE(
    "EM routing learns to leave out three of eight heads, others at each token, that are noise; one round of it does "
    "not",
    "[paper-04][long]") {
  for (const uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    EmAgreementOptions options;
    options.capsules = 4;
    options.input = "linear";  // so that nothing but the routing can tell outliers
    const auto learned = [&](int64_t iterations) {
      options.iterations = iterations;
      return left_after_learning(*std::make_shared<EmAgreement>(options, shape_of(8, 8, 8)), seed, 3);
    };
    const auto linear =
        left_after_learning(*std::make_shared<Concatenate>(ConcatenateOptions(), shape_of(8, 8, 8)), seed, 3);
    const auto em = learned(3), one_round = learned(1);
    CAPTURE(linear, em, one_round);
    CHECK(em <= 0.5 * linear);
    CHECK(one_round > 0.5 * linear);
  }
}

}  // namespace headlab
