// 1907.01470, 2110.03252: learned keys and values that every query sees.
#include "modules/attention/project/persistent.h"

#include "modules/attention/gate/windows.h"
#include "modules/attention/position/alibi.h"
#include "modules/attention/position/transformer_xl.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 7, S = 5, D = 12, H = 6, K = 2, N = 3;

AttentionOptions persistent(int64_t vectors = N) {
  AttentionOptions options;
  options.heads = H;
  options.then.items.emplace_back(adapter_catalogue, "persistent");
  options.then.items.back().as<PersistentOptions>().vectors = vectors;
  return options;
}

struct Case {
  std::string name;
  bool cross = false, is_causal = false, padded = false;
  int64_t groups = 0;  // 0: a key and a value for each head
  std::vector<int64_t> windows = {};
  std::string position = "none";
};

AttentionOptions options_of(const Case& c) {
  auto options = persistent();
  if (c.groups > 0) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = c.groups;
  }
  if (!c.windows.empty()) {
    options.gates.items.emplace_back(gate_catalogue, "windows");
    options.gates.items.back().as<WindowsOptions>().windows = c.windows;
  }
  options.position.choose(c.position);
  return options;
}

/// The whole attention as loops: the learned pairs are the first N keys and values of each head.
Tensor by_loops(Attention& attention, const Case& c, const Tensor& x, const Tensor& memory, const Tensor& key_mask) {
  const auto p = attention.named_parameters();
  const auto G = c.groups > 0 ? c.groups : H;
  const auto rows = [&](const Tensor& of, int64_t from, int64_t count) { return of.narrow(0, from, count); };
  const auto weight =
      c.cross ? torch::cat({p["project.query_weight"], p["project.memory_weight"]}) : p["project.weight"];
  const auto bias = c.cross ? torch::cat({p["project.query_bias"], p["project.memory_bias"]}) : p["project.bias"];
  auto q = reference::project(x, rows(weight, 0, H * K), rows(bias, 0, H * K), K);
  auto k = reference::project(memory, rows(weight, H * K, G * K), rows(bias, H * K, G * K), K);
  const auto v = reference::project(memory, rows(weight, (H + G) * K, G * K), rows(bias, (H + G) * K, G * K), K);
  if (c.position == "rope") {
    q = reference::rotate(q, 10000);
    k = reference::rotate(k, 10000);
  }
  const auto own_key = reference::in_double(p["then0.key"]), own_value = reference::in_double(p["then0.value"]);
  const auto length = k.size(2);
  auto keys = torch::zeros({B, H, N + length, K}, torch::kFloat64), values = torch::zeros_like(keys);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t n = 0; n < N; ++n) {
        keys[b][h][n] = own_key[h][n] * std::sqrt(2.0);
        values[b][h][n] = own_value[h][n] * std::sqrt(3.0);
      }
      for (int64_t s = 0; s < length; ++s) {
        keys[b][h][N + s] = k[b][h / (H / G)][s];
        values[b][h][N + s] = v[b][h / (H / G)][s];
      }
    }
  const std::vector<int64_t> own_group{0, 1, 2, 3, 4, 5};
  const auto products = reference::dot_products(q, keys, own_group, 1 / std::sqrt(2.0));
  const auto slopes = alibi_slopes(H);
  const reference::Scores scores = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    const auto distance = static_cast<double>(std::abs(t - (s - N)));
    return products(b, h, t, s) - (s >= N && c.position == "alibi" ? slopes[h] * distance : 0);
  };
  const reference::Sees sees = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    if (s < N) return true;
    const auto place = s - N, back = t - place;
    if (c.is_causal && back < 0) return false;
    if (!c.windows.empty() && c.windows[h] > 0 && std::abs(back) >= c.windows[h]) return false;
    return !key_mask.defined() || key_mask[b][place].item<bool>();
  };
  return reference::concatenate(reference::weigh_by(scores, x.size(1), values, own_group, sees), p["mix.weight"],
                                p["mix.bias"]);
}

}  // namespace

TEST_CASE("persistent vectors equal loops in which they are the first keys, seen whatever is hidden") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const std::vector<Case> cases{
      {"everything visible"},
      {"causal", false, true},
      {"padded", false, false, true},
      {"causal and padded, over groups", false, true, true, 2},
      {"rope turns the text's keys alone", false, true, false, 3, {}, "rope"},
      {"alibi is of the text's keys alone", false, true, true, 0, {}, "alibi"},
      {"windows", false, true, false, 0, {1, 3, 2, 0, 3, 1}},
      {"windows both ways, over groups, padded, with alibi", false, false, true, 2, {1, 3, 2, 0, 3, 1}, "alibi"},
      {"cross", true, false, true, 2}};
  for (const auto& c : cases) {
    INFO(c.name);
    auto attention = make_attention(options_of(c), D, c.cross);
    const auto x = noise({B, T, D}, "x"), memory = c.cross ? noise({B, S, D}, "memory") : x;
    Visibility see;
    see.causal = c.is_causal;
    if (c.padded) see.key_mask_BS = mask_of({memory.size(1), 2}, memory.size(1));
    const auto expected = by_loops(*attention, c, x, memory, see.key_mask_BS);
    Forward fast, looked;
    LambdaTap weights([](At at, Site) { return at == At::weights; },
                      [&](At, Site, Tensor value) {
                        CHECK(value.size(3) == N + memory.size(1));
                        CHECK(difference(value.sum(-1), torch::ones({B, H, T})) < 1e-12);
                        return value;
                      });
    looked.taps = {&weights};
    const auto given = c.cross ? memory : Tensor();
    CHECK(difference(attention->forward(call_of(x, fast, see, given)), expected) < 1e-12);
    CHECK(difference(attention->forward(call_of(x, looked, see, given)), expected) < 1e-12);
  }
}

TEST_CASE("where no token may be seen, persistent vectors are") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(persistent(), D, true);
  Visibility see;
  see.key_mask_BS = torch::zeros({B, S}, torch::kBool);
  Forward run;
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D}, "memory");
  const auto y = attention->forward(call_of(x, run, see, memory));
  CHECK(difference(y, by_loops(*attention, {"", true}, x, memory, see.key_mask_BS)) < 1e-12);
  CHECK(difference(y, attention->named_parameters()["mix.bias"].expand_as(y)) > 1e-3);
}

TEST_CASE("windows by blocks see persistent vectors as windows by a mask do, forward and backward") {
  DefaultDtype guard(torch::kFloat64);
  constexpr int64_t length = 300, ahead = 4;
  for (const bool is_causal : {true, false})
    for (const bool is_padded : {false, true})
      for (const int64_t window : {1, 9, 40}) {
        INFO("window " << window << (is_causal ? ", causal" : "") << (is_padded ? ", padded" : ""));
        const auto tensor = [&](const std::string& name, int64_t tokens) {
          return noise({2, 3, tokens, 2}, name).requires_grad_();
        };
        const auto q = tensor("q", length), k = tensor("k", ahead + length), v = tensor("v", ahead + length);
        const auto weight = noise({2, 3, length, 2}, "loss");
        Visibility see;
        see.causal = is_causal;
        if (is_padded) see.key_mask_BS = mask_of({length, 120}, length);
        const auto mask = visible(q, k, see, window, true, ahead);
        CHECK(mask.narrow(-1, 0, ahead).all().item<bool>());
        const auto scores = torch::matmul(q * 0.5, k.transpose(-2, -1))
                                .masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
        const auto expected = torch::matmul(at::_safe_softmax(scores, -1), v);
        const auto got = windowed_attention(q, k, v, see, window, 0.5, ahead);
        CHECK(difference(got, expected) < 1e-12);
        const auto gradients = [&](const Tensor& z) { return torch::autograd::grad({(z * weight).sum()}, {q, k, v}); };
        const auto of_got = gradients(got), of_expected = gradients(expected);
        for (std::size_t i = 0; i < 3; ++i) CHECK(difference(of_got[i], of_expected[i]) < 1e-11);
      }
}

TEST_CASE("a head of an all-attention layer has 5 D K + 2 N K parameters: 425,984 at the paper's size") {
  auto options = persistent(2048);
  options.heads = 8;
  options.project.as<StandardProjectOptions>().bias = false;
  options.position.choose("transformer_xl");
  options.position.as<TransformerXlOptions>().biases = false;
  Attention attention(options, 512, 512, false);
  CHECK(5 * 512 * 64 + 2 * 2048 * 64 == 425984);
  int64_t all = 0;
  for (const auto& parameter : attention.parameters()) all += parameter.numel();
  attention.keep({0, 2, 3, 5, 7});
  int64_t left = 0;
  for (const auto& parameter : attention.parameters()) left += parameter.numel();
  CHECK(all - left == 3 * 425984);
}

TEST_CASE("persistent keys start uniform within 1/sqrt(D), values normal of that deviation") {
  auto options = persistent(4000);
  const auto attention = std::make_shared<Attention>(options, D, D, false);
  initialise(*attention, 3);
  const auto p = attention->named_parameters();
  const auto bound = 1 / std::sqrt(12.0);
  const auto key = p["then0.key"], value = p["then0.value"];
  CHECK(key.abs().max().item<double>() <= bound + 1e-6);
  CHECK(key.abs().max().item<double>() > 0.99 * bound);
  CHECK(key.std().item<double>() == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(value.std().item<double>() == Approx(bound).epsilon(0.02));
  CHECK(value.abs().max().item<double>() > 3 * bound);
}

TEST_CASE("persistent vectors cost each query a product with each key and value, and no numbers of a cache") {
  Attention with(persistent(), D, D, false), without(
                                                 [] {
                                                   AttentionOptions plain;
                                                   plain.heads = H;
                                                   return plain;
                                                 }(),
                                                 D, D, false);
  CHECK(with.flops(T, T, true) - without.flops(T, T, true) == H * T * N * 2 * (K + K));
  CHECK(with.cache_numbers() == without.cache_numbers());
}

TEST_CASE("persistent vectors are the last adapter") {
  auto options = persistent();
  options.then.items.emplace_back(adapter_catalogue, "mix_heads");
  Problems problems;
  attention_rules(options, D, false, "attention", problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "attention.then[0]");
  CHECK(problems.found[0].message ==
        "persistent: expected it to be the last adapter; what follows would take its vectors for the context's");
}

}  // namespace headlab
