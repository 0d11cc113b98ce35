// 1905.09418, section 4 (1712.01312): stochastic gates that can be exactly 0 or 1.
#include "modules/attention/gate/hard_concrete.h"

#include <numeric>

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

Shape heads(int64_t count) {
  auto shape = std::make_shared<AttentionShape>();
  shape->heads.resize(count);
  std::iota(shape->heads.begin(), shape->heads.end(), 0);
  shape->original_heads = count;
  return shape;
}

HardConcrete gates_at(double log_alpha, int64_t count = 1) {
  HardConcreteOptions options;
  options.initial = log_alpha;
  return HardConcrete(options, heads(count));
}

/// The gates of one training pass.
Tensor drawn(HardConcrete& gate, int64_t count, uint64_t seed, Site site = {}) {
  torch::NoGradGuard no_grad;
  gate.train();
  Forward run;
  run.noise_seed = seed;
  const auto x = torch::zeros({1, 1, 1});
  return gate.weigh(torch::ones({1, count, 1, 1}), {}, call_of(x, run, {}, {}, site)).flatten();
}

AttentionOptions gated() {
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "hard_concrete");
  return options;
}

Tensor forward(Attention& attention, const Tensor& x) {
  torch::NoGradGuard no_grad;
  Forward run;
  return attention.forward(call_of(x, run, causal()));
}

void set_log_alpha(Attention& attention, const std::vector<double>& values) {
  torch::NoGradGuard no_grad;
  attention.named_parameters()["gate0.log_alpha"].copy_(torch::tensor(values, torch::kFloat64));
}

}  // namespace

TEST_CASE("gates-never-close: in evaluation a gate is clip(1.2 sigmoid(log alpha) - 0.1, 0, 1)", "[cases]") {
  DefaultDtype guard(torch::kFloat64);
  const auto gate = [](double log_alpha) { return gates_at(log_alpha).gate().item<double>(); };
  CHECK(gate(0) == Approx(0.5).epsilon(1e-12));
  CHECK(gate(2) == Approx(1.2 / (1 + std::exp(-2.0)) - 0.1).epsilon(1e-12));
  for (const double closed : {-2.398, -3.0, -50.0}) CHECK(gate(closed) == 0);
  for (const double open : {2.398, 3.0, 50.0}) CHECK(gate(open) == 1);
  CHECK(gate(-2.39) > 0);
  CHECK(gate(2.39) < 1);
  CHECK(gates_at(0).probability_open().item<double>() == Approx(0.6881).epsilon(1e-4));
}

TEST_CASE("the share of open gates is what the penalty counts") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t draws = 1000000;
  auto gate = gates_at(0.3, draws);
  const auto g = drawn(gate, draws, 4);
  // A share of n draws has the standard deviation sqrt(p(1-p)/n): 0.00043 and 0.00049 here; 0.002 is more than 4 of
  // them.
  const auto tolerance = 0.002;
  CHECK(std::abs(g.gt(0).to(torch::kFloat64).mean().item<double>() - 0.7486) < tolerance);
  CHECK(std::abs(g.eq(1).to(torch::kFloat64).mean().item<double>() - 0.3796) < tolerance);
  CHECK(gate.probability_open()[0].item<double>() == Approx(0.7486).epsilon(1e-4));
  CHECK(g.min().item<double>() == 0);
  CHECK(g.max().item<double>() == 1);
}

TEST_CASE("the noise of gates is of the pass's seed and the site, never of the global generator") {
  auto gate = gates_at(0.3, 64);
  const auto first = drawn(gate, 64, 1);
  torch::manual_seed(123);
  CHECK(torch::equal(drawn(gate, 64, 1), first));
  CHECK(!torch::equal(drawn(gate, 64, 2), first));
  CHECK(!torch::equal(drawn(gate, 64, 1, {Stack::enc_self, 1}), first));
}

TEST_CASE("the penalty is the expected number of open gates, in training alone") {
  HardConcreteOptions options;
  options.initial = 0.3;
  options.penalty = 0.5;
  HardConcrete gate(options, heads(4));
  for (const bool training : {true, false}) {
    gate.train(training);
    Forward run;
    const auto x = torch::zeros({1, 1, 1});
    gate.weigh(torch::ones({1, 4, 1, 1}), {}, call_of(x, run));
    REQUIRE(run.aux.size() == (training ? 1 : 0));
    if (training) CHECK((run.aux[0].sum / run.aux[0].count).item<double>() == Approx(0.5 * 4 * 0.7486).epsilon(1e-4));
  }
  auto free = gates_at(0.3);
  Forward run;
  const auto x = torch::zeros({1, 1, 1});
  free.weigh(torch::ones({1, 1, 1, 1}), {}, call_of(x, run));
  CHECK(run.aux.empty());
}

TEST_CASE("gates that are all 1 are plain attention, bit for bit") {
  const auto x = noise({2, 5, small_width}, "x");
  auto with = make_attention(gated(), small_width), without = make_attention(small_attention(), small_width);
  set_log_alpha(*with, {3, 4, 5, 6});
  CHECK(torch::equal(forward(*with, x), forward(*without, x)));
}

TEST_CASE("removing the heads of closed gates leaves the output as it is") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  auto attention = make_attention(gated(), small_width);
  set_log_alpha(*attention, {-3, 0.5, -2.5, 3});
  const auto before = forward(*attention, x);
  CHECK(attention->gate_list()[0]->closed() == std::vector<int64_t>{0, 2});
  attention->keep({1, 3});
  CHECK(difference(forward(*attention, x), before) < 1e-15);
  CHECK(attention->gate_list()[0]->closed().empty());
}

TEST_CASE("gates in series multiply, in either order") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  auto one = gated(), two = small_attention();
  one.gates.items.emplace_back(gate_catalogue, "scalar");
  two.gates.items.emplace_back(gate_catalogue, "scalar");
  two.gates.items.emplace_back(gate_catalogue, "hard_concrete");
  auto hard_first = make_attention(one, small_width), scalar_first = make_attention(two, small_width);
  auto plain = make_attention(small_attention(), small_width);
  const std::vector<double> alpha{-3, 0.5, 1, 3}, scale{2, -1, 0.5, 0.25};
  {
    torch::NoGradGuard no_grad;
    set_log_alpha(*hard_first, alpha);
    hard_first->named_parameters()["gate1.change"].copy_(torch::tensor(scale) - 1);
    scalar_first->named_parameters()["gate0.change"].copy_(torch::tensor(scale) - 1);
    scalar_first->named_parameters()["gate1.log_alpha"].copy_(torch::tensor(alpha));
  }
  auto product = torch::empty({1, 4});
  for (int64_t h = 0; h < 4; ++h)
    product[0][h] = scale[h] * std::clamp(1.2 / (1 + std::exp(-alpha[h])) - 0.1, 0.0, 1.0);
  Forward run;
  run.scale[Stack::dec_self] = product;
  torch::NoGradGuard no_grad;
  const auto expected = plain->forward(call_of(x, run, causal()));
  CHECK(difference(forward(*hard_first, x), expected) < 1e-14);
  CHECK(difference(forward(*scalar_first, x), expected) < 1e-14);
}

}  // namespace headlab
