// 2507.07694: many wide heads simulated from a few that are projected.
#include "modules/attention/project/simulated.h"

#include "modules/attention/attention.h"
#include "modules/attention/mix/grouped_average.h"
#include "modules/tensor/relevance.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/parameters.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, D = 12, C = 2, H = 6, K = 8, V = 5;  // V: the width of components and values

AttentionOptions simulated(const std::string& cache = "simulated", const std::string& position = "none",
                           int64_t kernel = 3) {
  AttentionOptions options;
  options.heads = H;
  options.head_width = K;
  options.value_width = V;
  options.project.choose("simulated");
  auto& own = options.project.as<SimulatedOptions>();
  own.components = C;
  own.kernel = kernel;
  own.cache = cache;
  options.position.choose(position);
  return options;
}

Tensor forward(Attention& attention, const Tensor& x) {
  Forward run;
  return attention.forward(call_of(x, run, causal()));
}

/// y[b][h][t][i] = bias_h + sum over channels c and places j of weight[h][c][j] x[b][c][t][i + j - (k-1)/2].
Tensor convolved(const Tensor& x_BCTd, const Tensor& weight_HCk, const Tensor& bias_H) {
  const auto w = reference::in_double(weight_HCk), b = reference::in_double(bias_H);
  const auto ws = w.accessor<double, 3>();
  const auto bs = b.accessor<double, 1>();
  const auto xs = x_BCTd.accessor<double, 4>();
  const auto d = x_BCTd.size(3), k = w.size(2);
  return reference::each({x_BCTd.size(0), w.size(0), x_BCTd.size(2), d},
                         [&](int64_t n, int64_t h, int64_t t, int64_t i) {
                           double sum = bs[h];
                           for (int64_t c = 0; c < w.size(1); ++c)
                             for (int64_t j = 0; j < k; ++j)
                               if (const auto at = i + j - (k - 1) / 2; at >= 0 && at < d)
                                 sum += ws[h][c][j] * xs[n][c][t][at];
                           return sum;
                         });
}

/// The same map for each head's numbers: x_BHTd, weight [K,d] -> y_BHTK.
Tensor widened(const Tensor& x_BHTd, const Tensor& weight, const Tensor& bias) {
  const auto w = reference::in_double(weight), b = reference::in_double(bias);
  const auto ws = w.accessor<double, 2>();
  const auto bs = b.accessor<double, 1>();
  const auto xs = x_BHTd.accessor<double, 4>();
  return reference::each({x_BHTd.size(0), x_BHTd.size(1), x_BHTd.size(2), w.size(0)},
                         [&](int64_t n, int64_t h, int64_t t, int64_t o) {
                           double sum = bs[o];
                           for (int64_t i = 0; i < w.size(1); ++i) sum += ws[o][i] * xs[n][h][t][i];
                           return sum;
                         });
}

/// q, k or v ("query_heads", ...) of components x_BCTd.
Tensor heads_by_hand(Attention& attention, const std::string& name, const Tensor& x_BCTd) {
  const auto of = [&](const std::string& map) { return parameter(attention, "project." + name + "." + map); };
  auto y = convolved(x_BCTd, of("expand"), of("expand_bias"));
  y = y + convolved(y.clamp_min(0), of("refine"), of("refine_bias"));
  if (name == "value_heads") return y;
  y = widened(y, of("widen"), of("widen_bias"));
  return y + widened(y.clamp_min(0), of("deepen"), of("deepen_bias"));
}

}  // namespace

TEST_CASE("simulated heads equal loops over numbers, for kernels of 1, 3 and 5, with positions and without") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const int64_t kernel : {1, 3, 5})
    for (const std::string position : {"none", "rope"}) {
      INFO(kernel << ", " << position);
      auto attention = make_attention(simulated("simulated", position, kernel), D);
      const auto weight = parameter(*attention, "project.components.weight"),
                 bias = parameter(*attention, "project.components.bias");
      const auto components = [&](int64_t which) {
        return reference::project(x, weight.narrow(0, which * C * V, C * V), bias.narrow(0, which * C * V, C * V), V);
      };
      auto q = heads_by_hand(*attention, "query_heads", components(0)),
           k = heads_by_hand(*attention, "key_heads", components(1));
      const auto v = heads_by_hand(*attention, "value_heads", components(2));
      CHECK(shape_text(q) == "[2, 6, 5, 8]");
      CHECK(shape_text(v) == "[2, 6, 5, 5]");
      if (position == "rope") {
        q = reference::rotate(q, 10000);
        k = reference::rotate(k, 10000);
      }
      const auto z = reference::weigh(q, k, v, {0, 1, 2, 3, 4, 5}, 1 / std::sqrt(static_cast<double>(K)),
                                      reference::up_to_itself());
      const auto y = reference::concatenate(z, parameter(*attention, "mix.weight"), parameter(*attention, "mix.bias"));
      CHECK(difference(forward(*attention, x), y) / y.abs().max().item<double>() < 1e-13);
    }
}

TEST_CASE("as many heads as components, of the same width, through identities, are plain heads") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const std::string cache : {"raw", "simulated"})
    for (const std::string position : {"none", "rope"}) {
      AttentionOptions plain;
      plain.heads = 3;
      plain.position.choose(position);
      auto options = plain;
      options.project.choose("simulated");
      options.project.as<SimulatedOptions>().components = 3;
      options.project.as<SimulatedOptions>().kernel = 5;
      options.project.as<SimulatedOptions>().cache = cache;
      auto same = make_attention(options, D), standard = make_attention(plain, D);
      for (const std::string what : {"weight", "bias"}) {
        parameter(*same, "project.components." + what).copy_(parameter(*standard, "project." + what));
        parameter(*same, "mix." + what).copy_(parameter(*standard, "mix." + what));
      }
      CHECK(difference(forward(*same, x), forward(*standard, x)) > 1e-2);
      for (auto& item : same->named_parameters()) {
        const auto& name = item.key();
        if (name.find("_heads.") == std::string::npos) continue;
        item.value().zero_();
        if (name.find(".expand") != std::string::npos && item.value().dim() == 3)
          item.value().select(2, 2).copy_(torch::eye(3));
        if (name.find(".widen") != std::string::npos && item.value().dim() == 2) item.value().copy_(torch::eye(4));
      }
      CHECK(difference(forward(*same, x), forward(*standard, x)) < 1e-13);
    }
}

TEST_CASE("12 heads of width 64 made 36 with queries of width 96 have 57,240 numbers more") {
  AttentionOptions options;
  options.heads = 36;
  options.head_width = 96;
  options.value_width = 64;
  options.project.choose("simulated");
  auto& own = options.project.as<SimulatedOptions>();
  own.components = 12;
  own.kernel = 5;
  const Attention attention(options, 768, 768, false);
  CHECK(numbers_of(attention, "project.") - numbers_of(attention, "project.components.") == 57240);
  AttentionOptions plain;
  plain.heads = 12;
  CHECK(numbers_of(attention, "project.components.") == numbers_of(Attention(plain, 768, 768, false), "project."));
  const Attention small(simulated("raw", "none", 3), D, D, false);
  const int64_t k = 3, heads = C * H * k + H * H * k + 2 * H, width = V * K + K * K + 2 * K;
  CHECK(numbers_of(small, "project.") - numbers_of(small, "project.components.") == 2 * (heads + width) + heads);
}

TEST_CASE("a cache keeps the components or what was simulated of them, and both give the same, token by token") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const std::string position : {"none", "rope", "alibi"}) {
    auto raw = make_attention(simulated("raw", position), D),
         whole = make_attention(simulated("simulated", position), D);
    CHECK(raw->cache_numbers() == 2 * C * V);
    CHECK(whole->cache_numbers() == H * (K + V));
    const auto y = forward(*raw, x);
    CHECK(difference(forward(*whole, x), y) < 1e-14);
    for (auto* attention : {raw.get(), whole.get()}) {
      State state;
      for (int64_t t = 0; t < T; ++t) {
        Forward run;
        auto call = call_of(x.narrow(1, t, 1), run, causal());
        call.q_pos = call.k_pos = torch::tensor({t}, torch::kLong);
        call.state = &state;
        CHECK(difference(attention->forward(call), y.narrow(1, t, 1)) < 1e-13);
      }
      REQUIRE(state.stored.size() == 2);
      CHECK(shape_text(state.stored[0]) == (attention == raw.get() ? "[2, 2, 5, 5]" : "[2, 6, 5, 8]"));
      CHECK(shape_text(state.stored[1]) == (attention == raw.get() ? "[2, 2, 5, 5]" : "[2, 6, 5, 5]"));
    }
  }
}

TEST_CASE("a removed head takes its rows of the last convolution, and leaves the other heads as they were") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  const std::vector<int64_t> kept{1, 3, 4};
  for (const std::string cache : {"raw", "simulated"}) {
    auto attention = make_attention(simulated(cache), D);
    const auto heads_of = [&] {
      std::map<At, Tensor> seen;
      LambdaTap tap([](At at, Site) { return at == At::q || at == At::k || at == At::v; },
                    [&](At at, Site, Tensor value) { return seen[at] = value; });
      Forward run;
      run.taps = {&tap};
      attention->forward(call_of(x, run, causal()));
      return seen;
    };
    const auto before = heads_of();
    attention->keep(kept);
    const auto after = heads_of();
    const auto which = torch::tensor(kept, torch::kLong);
    for (const auto& [at, value] : after) CHECK(difference(value, before.at(at).index_select(1, which)) < 1e-14);
    for (const std::string name : {"project.query_heads.", "project.key_heads.", "project.value_heads."}) {
      CHECK(shape_text(parameter(*attention, name + "expand")) == "[6, 2, 3]");
      CHECK(shape_text(parameter(*attention, name + "refine")) == "[3, 6, 3]");
      CHECK(shape_text(parameter(*attention, name + "refine_bias")) == "[3]");
    }
    CHECK(attention->cache_numbers() == (cache == "raw" ? 2 * C * V : 3 * (K + V)));
  }
}

TEST_CASE("a cross-attention simulates its memory's heads, and reads them from its cache") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), memory = noise({B, 3, 7}, "memory");
  for (const std::string cache : {"raw", "simulated"}) {
    auto attention = make_attention(simulated(cache), D, true, std::nullopt, 7);
    const auto pass = [&](State* state) {
      Forward run;
      auto call = call_of(x, run, {}, memory);
      call.state = state;
      return attention->forward(call);
    };
    const auto y = pass(nullptr);
    State state;
    state.fixed = true;
    CHECK(torch::equal(pass(&state), y));
    CHECK(torch::equal(pass(&state), y));
    CHECK(state.length() == 3);
    CHECK(state.stored[0].size(1) == (cache == "raw" ? C : H));
  }
}

TEST_CASE("the work of simulating is counted") {
  const Attention attention(simulated(), D, D, false);
  AttentionOptions plain;  // the same heads and widths by matrices of their own
  plain.heads = H;
  plain.head_width = K;
  plain.value_width = V;
  const Attention standard(plain, D, D, false);
  const auto matrices = 2 * T * D * H * (2 * K + V), components = 2 * T * D * 3 * C * V;
  const auto heads = 2 * T * V * (C * H * 3 + H * H * 3), width = 2 * T * H * (V * K + K * K);
  CHECK(attention.flops(T, T, true) - standard.flops(T, T, true) == components + 3 * heads + 2 * width - matrices);
}

TEST_CASE("a kernel is odd, and rope needs an even width of simulated queries") {
  Problems problems;
  SimulatedOptions options;
  options.kernel = 4;
  options.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "kernel");
  CHECK_THAT(problems.found[0].message, Catch::Contains("nearest: 3, 5"));
  CHECK_THROWS_AS(Attention(simulated("raw", "none", 2), D, D, false), ShapeError);
  auto odd = simulated("raw", "rope");
  odd.head_width = 7;
  CHECK_THROWS_AS(Attention(odd, D, D, false), ShapeError);
}

TEST_CASE("relevance flows through simulated heads that are averaged") {
  DefaultDtype guard(torch::kFloat64);
  auto options = simulated();
  options.mix.choose("grouped_average");
  options.mix.as<GroupedAverageOptions>().concatenated = 2;
  auto attention = make_attention(options, D);
  attention->keep({0, 1, 3, 5});
  const auto x = noise({B, T, D}, "x").requires_grad_();
  const auto plain = forward(*attention, x);
  const relevance::Guard flows;
  const auto y = forward(*attention, x);
  CHECK(difference(y, plain) / plain.abs().max().item<double>() < 1e-13);
  CHECK(relevance::uncovered(y).empty());
  const auto R = noise({B, T, D}, "R").abs();
  const auto arrived = torch::autograd::grad({y}, {x}, {R})[0].sum().item<double>();
  CHECK(arrived == Approx(R.sum().item<double>()));
}

}  // namespace headlab
