// 1901.02860, section 3.3: scores that know the distance by a learned product.
#include "modules/attention/position/transformer_xl.h"

#include "modules/attention/gate/windows.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/dot_product.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 7, D = 12, H = 6, K = 2;

AttentionOptions relative(bool biases = true, int64_t groups = 0, std::vector<int64_t> windows = {}) {
  AttentionOptions options;
  options.heads = H;
  if (groups > 0) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = groups;
  }
  if (!windows.empty()) {
    options.gates.items.emplace_back(gate_catalogue, "windows");
    options.gates.items.back().as<WindowsOptions>().windows = std::move(windows);
  }
  options.position.choose("transformer_xl");
  options.position.as<TransformerXlOptions>().biases = biases;
  return options;
}

/// ((q_t + u) . k_s + (q_t + v) . W R_{t-s}) / sqrt(K), number by number.
Tensor by_loops(Attention& attention, int64_t G, const Tensor& x, const reference::Sees& sees) {
  const auto p = attention.named_parameters();
  const auto rows = [&](const std::string& name, int64_t from, int64_t count) {
    return p[name].narrow(0, from, count);
  };
  const auto q = reference::project(x, rows("project.weight", 0, H * K), rows("project.bias", 0, H * K), K);
  const auto k = reference::project(x, rows("project.weight", H * K, G * K), rows("project.bias", H * K, G * K), K);
  const auto v =
      reference::project(x, rows("project.weight", (H + G) * K, G * K), rows("project.bias", (H + G) * K, G * K), K);
  const auto zeros = torch::zeros({H, K}, torch::kFloat64);
  const auto content = p.contains("position.content_bias") ? reference::in_double(p["position.content_bias"]) : zeros;
  const auto of_position =
      p.contains("position.position_bias") ? reference::in_double(p["position.position_bias"]) : zeros;
  const auto weight = reference::in_double(p["position.weight"]);
  std::vector<int64_t> group_of;
  for (int64_t h = 0; h < H; ++h) group_of.push_back(h / (H / G));
  const reference::Scores scores = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    const auto qs = q.accessor<double, 4>(), ks = k.accessor<double, 4>();
    const auto us = content.accessor<double, 2>(), vs = of_position.accessor<double, 2>();
    const auto ws = weight.accessor<double, 3>();
    double sum = 0;
    for (int64_t i = 0; i < K; ++i) {
      sum += (qs[b][h][t][i] + us[h][i]) * ks[b][group_of[h]][s][i];
      double r = 0;  // row i of W times R
      for (int64_t n = 0; n < D / 2; ++n) {
        const auto angle = static_cast<double>(t - s) * std::pow(10000.0, -2.0 * static_cast<double>(n) / D);
        r += ws[h][i][n] * std::sin(angle) + ws[h][i][D / 2 + n] * std::cos(angle);
      }
      sum += (qs[b][h][t][i] + vs[h][i]) * r;
    }
    return sum / std::sqrt(2.0);
  };
  return reference::concatenate(reference::weigh_by(scores, x.size(1), v, group_of, sees), p["mix.weight"],
                                p["mix.bias"]);
}

}  // namespace

TEST_CASE("relative positions equal double loops over queries and keys") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  const std::vector<int64_t> windows{1, 3, 2, 0, 3, 1};
  for (const bool biases : {true, false})
    for (const bool is_causal : {true, false})
      for (const int64_t groups : {0, 2})
        for (const bool windowed : {false, true}) {
          auto attention = make_attention(relative(biases, groups, windowed ? windows : std::vector<int64_t>{}), D);
          Visibility see;
          see.causal = is_causal;
          see.key_mask_BS = mask_of({T, 4}, T);
          const auto expected =
              by_loops(*attention, groups > 0 ? groups : H, x, [&](int64_t b, int64_t h, int64_t t, int64_t s) {
                if (is_causal && s > t) return false;
                if (windowed && windows[h] > 0 && std::abs(t - s) >= windows[h]) return false;
                return b == 0 || s < 4;
              });
          Forward fast, looked;
          LambdaTap weights([](At at, Site) { return at == At::weights; },
                            [](At, Site, Tensor value) { return value; });
          looked.taps = {&weights};
          CHECK(difference(attention->forward(call_of(x, fast, see)), expected) < 1e-12);
          CHECK(difference(attention->forward(call_of(x, looked, see)), expected) < 1e-12);
        }
}

TEST_CASE("relative positions know distances alone, of texts that stand anywhere") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto attention = make_attention(relative(), D);
  const auto x = noise({B, T, D}, "x");
  Forward run;
  auto call = call_of(x, run, causal());
  const auto near = attention->forward(call);
  call.q_pos = call.k_pos = torch::arange(500, 500 + T);
  CHECK(difference(attention->forward(call), near) < 1e-10);
  // A text each with places of its own.
  call.q_pos = call.k_pos = torch::stack({torch::arange(T), torch::arange(90, 90 + T)});
  CHECK(difference(attention->forward(call), near) < 1e-11);
  call.q_pos = call.k_pos = torch::arange(T) * 2;
  CHECK(difference(attention->forward(call), near) > 1e-3);
}

TEST_CASE("a query that is put in another's place is compared with keys and distances alike") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto attention = make_attention(relative(), D);
  const auto x = noise({B, T, D}, "x"), other = noise({B, T, D}, "other");
  Tensor theirs, scores;
  LambdaTap keep([](At at, Site) { return at == At::q || at == At::scores; },
                 [&](At at, Site, Tensor value) { return (at == At::q ? theirs : scores) = value; });
  Forward run;
  run.taps = {&keep};
  attention->forward(call_of(other, run, causal()));
  const auto expected_q = theirs;
  // Their queries with our keys: from a pass in which x gives keys and positions the same.
  Tensor seen;
  LambdaTap put([](At at, Site) { return at == At::q || at == At::scores; },
                [&](At at, Site, Tensor value) {
                  if (at == At::q) return expected_q;
                  return seen = value;
                });
  Forward patched;
  patched.taps = {&put};
  attention->forward(call_of(other, patched, causal()));
  CHECK(torch::equal(seen, scores));  // their own back in their own place
  attention->forward(call_of(x, patched, causal()));
  // The part of distances depends on the query alone: the scores of both passes differ by (q + u) (k - k').
  const auto p = attention->named_parameters();
  const auto keys = [&](const Tensor& of) {
    return reference::project(of, p["project.weight"].narrow(0, H * K, H * K),
                              p["project.bias"].narrow(0, H * K, H * K), K);
  };
  const auto change = torch::matmul(expected_q, (keys(x) - keys(other)).transpose(-2, -1)) / std::sqrt(2.0);
  const auto below = torch::ones({T, T}, torch::kBool).tril();
  CHECK(difference((seen - scores).masked_select(below), change.masked_select(below)) < 1e-12);
}

TEST_CASE("relative positions are computed by LibTorch's fused kernel in evaluation, and learn") {
  auto attention = make_attention(relative(), D);
  const auto x = noise({B, T, D}, "x");
  const Site site{Stack::dec_self, 0};
  const auto times = [](const std::map<std::string, int>& ran, const std::string& name) {
    return ran.count(name) ? ran.at(name) : 0;
  };
  Forward run;
  CHECK(!attention->fusable(site, run));
  attention->forward(call_of(x, run, causal())).square().sum().backward();
  const auto p = attention->named_parameters();
  for (const std::string name : {"weight", "content_bias", "position_bias"})
    CHECK(p["position." + name].grad().abs().max().item<double>() > 0);
  torch::NoGradGuard no_grad;
  CHECK(attention->fusable(site, run));
  const auto ran = operators_of([&] { attention->forward(call_of(x, run, causal())); });
  CHECK(times(ran, "aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
}

TEST_CASE("relative positions keep their frequencies in half precision") {
  auto attention = make_attention(relative(), D);
  const auto exact = attention->named_buffers()["position.frequency"].clone();
  attention->to(torch::kHalf);
  CHECK(torch::equal(attention->named_buffers()["position.frequency"], exact));
  CHECK(attention->named_parameters()["position.weight"].scalar_type() == torch::kHalf);
  torch::NoGradGuard no_grad;
  Forward run;
  auto call = call_of(noise({1, 5, D}, "x").to(torch::kHalf), run, causal());
  const auto near = attention->forward(call);
  CHECK(near.scalar_type() == torch::kHalf);
  call.q_pos = call.k_pos = torch::arange(4000, 4005);
  CHECK(difference(attention->forward(call), near) < 0.01);
}

TEST_CASE("relative positions are refused in a cross-attention, at an odd width and beside other scores") {
  CHECK_THROWS_WITH(
      Attention(relative(), D, D, true),
      "position.transformer_xl: expected a self-attention; a cross-attention's queries and keys share no positions");
  auto odd = relative();
  odd.head_width = 2;
  CHECK_THROWS_WITH(Attention(odd, 13, 13, false),
                    "position.transformer_xl: expected an even d_model, of sines and cosines, got 13");
  Problems problems;
  attention_rules(odd, 13, false, "attention", problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "attention.position");
  for (const bool additive : {false, true}) {
    auto options = relative();
    if (additive)
      options.weigh.score.choose("additive");
    else
      options.weigh.score.as<DotProductOptions>().scale = 1.0;
    Problems of_score;
    attention_rules(options, D, false, "attention", of_score);
    REQUIRE(of_score.found.size() == 1);
    CHECK(of_score.found[0].field == "attention.weigh.score");
  }
}

}  // namespace headlab
