// 2110.03252: hard-concrete gates that are rounded, with the output scaled by heads / open heads.
#include "modules/attention/gate/l0_round.h"

#include <numeric>

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

L0Round rounded_at(double log_alpha, int64_t count = 1, double penalty = 0, bool scale_output = true) {
  auto shape = std::make_shared<AttentionShape>();
  shape->heads.resize(count);
  std::iota(shape->heads.begin(), shape->heads.end(), 0);
  shape->original_heads = count;
  L0RoundOptions options;
  options.initial = log_alpha;
  options.penalty = penalty;
  options.scale_output = scale_output;
  return L0Round(options, shape);
}

AttentionOptions gated(bool scale_output = true) {
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "l0_round");
  options.gates.items.back().as<L0RoundOptions>().scale_output = scale_output;
  return options;
}

void set_log_alpha(Attention& attention, const std::vector<double>& values) {
  torch::NoGradGuard no_grad;
  attention.named_parameters()["gate0.log_alpha"].copy_(torch::tensor(values, torch::kFloat64));
}

Tensor forward(Attention& attention, const Tensor& x, std::map<Stack, Tensor> scale = {}) {
  torch::NoGradGuard no_grad;
  Forward run;
  run.scale = std::move(scale);
  return attention.forward(call_of(x, run, causal()));
}

}  // namespace

TEST_CASE("at alpha = 2 a rounded gate is 0.95696 before rounding, 1 after, and counts 0.94259 in the penalty") {
  DefaultDtype guard(torch::kFloat64);
  const auto gate = rounded_at(2);
  CHECK(gate.HardConcrete::gate().item<double>() == Approx(0.95696).margin(5e-6));
  CHECK(gate.gate().item<double>() == 1);
  CHECK(gate.probability_open().item<double>() == Approx(0.94259).margin(5e-6));
}

TEST_CASE("in evaluation a rounded gate is closed exactly where alpha < 0") {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    DefaultDtype guard(type);
    for (const double alpha : {-20.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 20.0}) {
      INFO(alpha);
      const auto gate = rounded_at(alpha);
      CHECK(gate.gate().item<double>() == (alpha < 0 ? 0 : 1));
      CHECK(gate.closed().size() == (alpha < 0 ? 1 : 0));
    }
  }
}

TEST_CASE("in training a rounded gate is 0 or 1, open with probability sigmoid(alpha), and noise has its own seed") {
  torch::NoGradGuard no_grad;
  auto gate = rounded_at(0.7, 4, 0, false);
  gate.train();
  const auto x = torch::zeros({1, 1, 1});
  const auto drawn = [&](uint64_t seed) {
    Forward run;
    run.noise_seed = seed;
    return gate.weigh(torch::ones({1, 4, 1, 1}), {}, call_of(x, run)).flatten();
  };
  CHECK(torch::equal(drawn(3), drawn(3)));
  double open = 0;
  constexpr int passes = 5000;
  for (uint64_t seed = 0; seed < passes; ++seed) {
    const auto gates = drawn(seed);
    if (seed < 50) CHECK(gates.eq(0).logical_or(gates.eq(1)).all().item<bool>());
    open += gates.sum().item<double>();
  }
  const auto p = 1 / (1 + std::exp(-0.7)), deviation = std::sqrt(p * (1 - p) / (4 * passes));
  CHECK(std::abs(open / (4 * passes) - p) < 4 * deviation);
}

TEST_CASE("gradients pass the rounding as if it were not there") {
  DefaultDtype guard(torch::kFloat64);
  const auto u = torch::tensor({0.3, 0.45, 0.5, 0.8});
  auto rounded = rounded_at(0.1, 4);
  const auto weight = torch::tensor({1.0, -2.0, 3.0, 0.5});
  auto alpha = rounded.named_parameters()["log_alpha"];
  const auto by_gate = torch::autograd::grad({(rounded.gate(u) * weight).sum()}, {alpha})[0];
  // (zeta - gamma) s (1 - s) / beta inside the stretch, 0 where it is clipped
  const auto s = torch::sigmoid((u.log() - (1 - u).log() + 0.1) / 0.333);
  const auto stretched = 1.2 * s - 0.1;
  const auto inside = stretched.gt(0).logical_and(stretched.lt(1)).to(torch::kFloat64);
  CHECK(difference(by_gate, weight * inside * 1.2 * s * (1 - s) / 0.333) < 1e-12);
  CHECK(by_gate.abs().max().item<double>() > 0.5);
}

TEST_CASE("what open heads give is multiplied by heads / open heads") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  auto gates = make_attention(gated(), small_width), plain = make_attention(small_attention(), small_width);
  set_log_alpha(*gates, {-3, 0.5, -1, 3});
  const auto expected = forward(*plain, x, {{Stack::dec_self, torch::tensor({{0.0, 2.0, 0.0, 2.0}})}});
  CHECK(difference(forward(*gates, x), expected) < 1e-14);
  auto unscaled = make_attention(gated(false), small_width);
  set_log_alpha(*unscaled, {-3, 0.5, -1, 3});
  CHECK(difference(forward(*unscaled, x),
                   forward(*plain, x, {{Stack::dec_self, torch::tensor({{0.0, 1.0, 0.0, 1.0}})}})) < 1e-14);
  set_log_alpha(*gates, {-1, -1, -1, -1});
  CHECK(difference(forward(*gates, x), gates->named_parameters()["mix.bias"].expand_as(x)) == 0);
}

TEST_CASE(
    "removing closed heads keeps the scale of the others, and a removed open head leaves what masking it leaves") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({2, 5, small_width}, "x");
  auto attention = make_attention(gated(), small_width);
  set_log_alpha(*attention, {-3, 0.5, 1, 3});
  const auto before = forward(*attention, x);
  CHECK(attention->gate_list()[0]->closed() == std::vector<int64_t>{0});
  const auto masked = forward(*attention, x, {{Stack::dec_self, torch::tensor({{1.0, 1.0, 0.0, 1.0}})}});
  attention->keep({1, 2, 3});
  CHECK(difference(forward(*attention, x), before) < 1e-15);
  attention->keep({1, 3});
  CHECK(difference(forward(*attention, x), masked) < 1e-15);
  CHECK(difference(masked, before) > 1e-3);
  const auto clone = std::dynamic_pointer_cast<Attention>(attention->clone());
  CHECK(torch::equal(forward(*clone, x), forward(*attention, x)));
}

TEST_CASE("an all-attention model without its closed heads gives the same logits") {
  auto attention = gated();
  attention.then.items.emplace_back(adapter_catalogue, "persistent");
  attention.position.choose("transformer_xl");
  auto options = small_decoder_only(attention);
  options.decoder.feed_forward.choose("none");
  auto model = make_model(model_choice("decoder_only", options));
  HeadTable kept;
  const std::vector<std::vector<double>> alphas{{-1, 2, -0.1, 0.1}, {-2, -1, -0.5, 3}};
  const torch::NoGradGuard no_grad;
  for (const auto& [site, mixer] : model->mixers()) {
    auto& of = dynamic_cast<Attention&>(*mixer);
    const auto& alpha = alphas[static_cast<std::size_t>(site.layer)];
    set_log_alpha(of, alpha);
    auto& layer = kept[site.stack].emplace_back();
    for (int64_t h = 0; h < small_heads; ++h)
      if (alpha[static_cast<std::size_t>(h)] >= 0) layer.push_back(h);
    CHECK(of.gate_list()[0]->closed().size() == 4 - layer.size());
  }
  const auto batch = small_batch();
  const auto before = logits_of(*model, batch);
  model->keep(kept);
  CHECK(text_of(model->heads()) == "dec.self [1 3][3]");
  CHECK(difference(logits_of(*model, batch), before) < 1e-6);
}

TEST_CASE("a rounded gate whose alpha is held fixed stands as in evaluation while the rest learns") {
  DefaultDtype guard(torch::kFloat64);
  auto options = gated();
  options.gates.items.back().as<L0RoundOptions>().penalty = 1;
  auto attention = make_attention(options, small_width);
  set_log_alpha(*attention, {-0.3, 0.2, 0.1, -0.1});
  const auto x = noise({2, 5, small_width}, "x");
  const auto evaluated = forward(*attention, x);
  attention->train();
  const auto trained = [&](uint64_t seed) {
    Forward run;
    run.noise_seed = seed;
    auto y = attention->forward(call_of(x, run, causal()));
    return std::pair(y.detach(), run.aux);
  };
  double noise = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) noise = std::max(noise, difference(trained(seed).first, evaluated));
  CHECK(noise > 1e-3);
  const auto aux = trained(0).second;
  REQUIRE(aux.size() == 1);
  CHECK(aux[0].name == "l0_round");
  double expected = 0;
  for (const double alpha : {-0.3, 0.2, 0.1, -0.1}) expected += 1 / (1 + std::exp(-(alpha + 0.333 * std::log(11.0))));
  CHECK(aux[0].sum.item<double>() == Approx(expected).epsilon(1e-12));
  attention->named_parameters()["gate0.log_alpha"].set_requires_grad(false);
  const auto [still, none] = trained(0);
  CHECK(torch::equal(still, evaluated));
  CHECK(none.empty());
}

}  // namespace headlab
