#include "modules/attention/gate/scalar.h"

#include "modules/attention/mix/low_rank.h"
#include "modules/base/random.h"
#include "modules/loss/cross_entropy.h"
#include "modules/tensor/torch.h"
#include "src/train/optimizer/adam.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

Shape shape_of(int64_t heads, int64_t head_width, int64_t width) {
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = width;
  shape->head_width = shape->value_width = head_width;
  shape->original_heads = heads;
  for (int64_t h = 0; h < heads; ++h) shape->heads.push_back(h);
  set_groups(*shape, heads);
  return shape;
}

AttentionOptions with_scalar() {
  AttentionOptions options;
  options.heads = 4;
  options.gates.items.emplace_back(gate_catalogue, "scalar");
  return options;
}

}  // namespace

TEST_CASE("a reweighted head is its head times one and the change; the gradient of the change is <dL/dy, z_h W_O^h>", "[gate][paper-35]") {
  const DefaultDtype in_double(torch::kFloat64);
  auto attention = make_attention(with_scalar(), small_width);
  const auto x = noise({2, 5, small_width}, "x"), upstream = noise({2, 5, small_width}, "dy");
  auto change = attention->named_parameters()["gate0.change"];
  CHECK(change.numel() == 4);
  struct Heads : Tap {
    Tensor z;
    bool wants(At at, Site) const override { return at == At::z; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override { return z = value; }
  } heads;
  Forward run;
  run.taps = {&heads};
  const auto y = attention->forward(call_of(x, run, causal()));
  const auto gradient = torch::autograd::grad({y}, {change}, {upstream}).front();
  const auto mix = attention->named_parameters()["mix.weight"], bias = attention->named_parameters()["mix.bias"];
  auto expected = bias.expand({2, 5, small_width}).clone();
  for (int64_t h = 0; h < 4; ++h) {
    const auto o = torch::matmul(heads.z.select(1, h), mix.narrow(1, 2 * h, 2).t());
    CHECK(gradient[h].item<double>() == Catch::Detail::Approx((upstream * o).sum().item<double>()));
    expected = expected + (1 + change[h]) * o;
  }
  CHECK((y - expected).abs().max().item<double>() < 1e-12);

  // Without a change it is the attention without the gate; merged into W_O it is the same again.
  auto plain_options = with_scalar();
  plain_options.gates.items.clear();
  auto plain = make_attention(plain_options, small_width);
  const torch::NoGradGuard no_grad;
  for (auto& item : plain->named_parameters()) item.value().copy_(attention->named_parameters()[item.key()]);
  const auto output = [&](const std::shared_ptr<Attention>& of) {
    Forward fresh;
    return of->forward(call_of(x, fresh, causal()));
  };
  const auto before = output(attention);
  for (int64_t h = 0; h < 4; ++h) plain->named_parameters()["mix.weight"].narrow(1, 2 * h, 2).mul_(1 + change[h].item<double>());
  CHECK((output(plain) - before).abs().max().item<double>() < 1e-12);
  plain->named_parameters()["mix.weight"].copy_(mix);
  change.zero_();
  CHECK((output(attention) - output(plain)).abs().max().item<double>() < 1e-15);
}

TEST_CASE("a mix of low rank begins as W_O and adds the product of its two matrices", "[mix][paper-35]") {
  const DefaultDtype in_double(torch::kFloat64);
  LowRankMixOptions options;
  options.rank = 2;
  options.scale = 0.5;
  const auto made = std::make_shared<LowRankMix>(options, shape_of(4, 3, 8));
  auto& mix = *made;
  initialise(mix, 1);
  const auto z = noise({2, 4, 5, 3}, "z");
  auto of = mix.named_parameters();
  const auto by_matrix = [&](const Tensor& matrix) { return torch::matmul(z.transpose(1, 2).flatten(2), matrix.t()) + of["bias"]; };
  const torch::NoGradGuard no_grad;
  CHECK((mix.mix(z, {}) - by_matrix(of["weight"])).abs().max().item<double>() == 0);
  of["up"].copy_(noise({8, 2}, "up"));
  CHECK((mix.mix(z, {}) - by_matrix(of["weight"] + 0.5 * torch::matmul(of["up"], of["down"]))).abs().max().item<double>() < 1e-13);
  CHECK((mix.per_head(z).sum(1) + of["bias"] - mix.mix(z, {})).abs().max().item<double>() < 1e-13);
}

TEST_CASE("of few examples a number a head learns more than a matrix of rank 2, of many no more", "[gate][paper-35][long]") {
  // 16 frozen heads, of which head h copies the token h back through a random map of its own; the label is what a frozen
  // readout says of one hidden head alone, and the model reads out their sum.
  constexpr int64_t heads = 16, width = 32, tests = 1000;
  constexpr int seeds = 20;
  std::map<int64_t, double> untouched, scalars, low_rank;
  int right = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    const auto drawn = [&](at::IntArrayRef sizes, const std::string& name) {
      return torch::empty(sizes).normal_(0, 1, named_generator(seed, name));
    };
    const auto hidden = static_cast<int64_t>(random.below(heads));
    const auto maps = drawn({heads, width, width}, "maps") / std::sqrt(double(width)), readout = drawn({2, width}, "readout");
    for (const int64_t n : {10, 30, 300}) {
      // z_h, already of the model's width: W_O is one identity a head.
      const auto tokens = drawn({n + tests, heads, width}, "tokens" + std::to_string(n));
      const auto z_NHK = torch::einsum("nhi,hij->nhj", {tokens, maps});
      const auto labels = torch::matmul(z_NHK.select(1, hidden), readout.t()).argmax(-1);
      const auto z = z_NHK.unsqueeze(2);  // [N,H,1,K]
      const auto shape = shape_of(heads, width, width);
      LowRankMixOptions options;
      options.bias = false;
      options.rank = 2;
      const auto accuracy = [&](const Tensor& y) {
        return torch::matmul(y, readout.t()).argmax(-1).narrow(0, n, tests).eq(labels.narrow(0, n, tests)).to(torch::kFloat64).mean().item<double>();
      };
      const auto trained = [&](double rate, double l1, const NamedParameters& parameters, const std::function<Tensor()>& output) {
        Adam adam(AdamOptions(), parameters);
        for (int step = 0; step < 300; ++step) {
          for (const auto& [name, parameter] : parameters) const_cast<Tensor&>(parameter).mutable_grad() = Tensor();
          auto loss = smoothed_cross_entropy(torch::matmul(output().narrow(0, 0, n), readout.t()), labels.narrow(0, 0, n), 0).sum / static_cast<double>(n);
          for (const auto& [name, parameter] : parameters) loss = loss + l1 * parameter.abs().sum();
          loss.backward();
          adam.step(rate);
        }
        const torch::NoGradGuard no_grad;
        return accuracy(output());
      };
      const auto made = std::make_shared<LowRankMix>(options, shape);
      auto& mix = *made;
      initialise(mix, seed);
      auto of = mix.named_parameters();
      {
        const torch::NoGradGuard no_grad;
        of["weight"].copy_(torch::eye(width).repeat({1, heads}));
        untouched[n] += accuracy(mix.mix(z, {}).squeeze(1)) / seeds;
      }
      const auto gate_made = std::make_shared<ScalarGate>(ScalarGateOptions(), shape);
      auto& gate = *gate_made;
      initialise(gate, seed);
      auto change = gate.named_parameters()["change"];
      Forward run;
      const auto call = call_of(z_NHK, run);
      scalars[n] += trained(0.1, 0.01, {{"change", change}}, [&] { return gate.weigh(z, {}, call).sum(1).squeeze(1); }) / seeds;
      if (n == 30) right += change.argmax().item<int64_t>() == hidden;
      double best = 0;  // the control gets the best of several rates, judged on the test itself
      for (const double rate : {0.003, 0.01, 0.03}) {
        initialise(mix, seed);
        const torch::NoGradGuard no_grad;
        of["weight"].copy_(torch::eye(width).repeat({1, heads}));
        const at::AutoGradMode with_grad(true);
        best = std::max(best, trained(rate, 0, {{"down", of["down"]}, {"up", of["up"]}}, [&] { return mix.mix(z, {}).squeeze(1); }));
      }
      low_rank[n] += best / seeds;
    }
  }
  for (const int64_t n : {10, 30, 300}) {
    CAPTURE(n, untouched[n], low_rank[n], scalars[n]);
    CHECK(untouched[n] == Catch::Detail::Approx(0.58).margin(0.03));  // the angle between one of 16 parts and their sum
    if (n == 10) CHECK(scalars[n] >= low_rank[n] + 0.03);
    if (n == 30) CHECK(scalars[n] >= low_rank[n] + 0.08);
    if (n == 300) CHECK(low_rank[n] >= scalars[n] - 0.01);
  }
  CAPTURE(right);
  CHECK(right >= 19);
}

}  // namespace headlab
