// The walk against plain loops in double precision (reference.h), and what its cuts into blocks do.
#include "modules/attention/attention.h"

#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/scalar.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/position/alibi.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/additive.h"
#include "modules/attention/weigh/dot_product.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 7, S = 5, D = 12, K = 4;

struct Case {
  std::string name = {};
  int64_t heads = 6, groups = 6;
  bool cross = false, causal = true, bias = true, rope = false, mixed = false;
  std::optional<double> factor = {};
  std::vector<int64_t> windows = {};
  bool padded = false;
  bool gated = false;
  std::vector<int64_t> kept = {};  // empty: all
  int64_t value_width = K;
  std::string alibi = {};  // "outside", "inside"
  int64_t additive = 0;    // its hidden width
};

AttentionOptions options_of(const Case& c) {
  AttentionOptions o;
  o.heads = c.heads;
  o.head_width = K;
  if (c.value_width != K) o.value_width = c.value_width;
  if (c.groups == c.heads) {
    o.project.as<StandardProjectOptions>().bias = c.bias;
  } else {
    o.project.choose("grouped");
    o.project.as<GroupedProjectOptions>().groups = c.groups;
    o.project.as<GroupedProjectOptions>().bias = c.bias;
  }
  if (c.mixed) o.then.items.emplace_back(adapter_catalogue, "mix_heads");
  if (c.rope) o.position.choose("rope");
  if (!c.alibi.empty()) {
    o.position.choose("alibi");
    o.position.as<AlibiOptions>().bias = c.alibi;
  }
  if (c.additive) {
    o.weigh.score.choose("additive");
    o.weigh.score.as<AdditiveOptions>().width = c.additive;
  } else {
    o.weigh.score.as<DotProductOptions>().scale = c.factor;
  }
  if (!c.windows.empty()) {
    o.gates.items.emplace_back(gate_catalogue, "windows");
    o.gates.items.back().as<WindowsOptions>().windows = c.windows;
  }
  if (c.gated) {
    o.gates.items.emplace_back(gate_catalogue, "hard_concrete");
    o.gates.items.emplace_back(gate_catalogue, "scalar");
  }
  o.mix.as<ConcatenateOptions>().bias = c.bias;
  return o;
}

/// The case by loops, from the attention's own parameters.
Tensor by_loops(const Case& c, const Attention& attention, const Tensor& x, const Tensor& memory,
                const Visibility& see) {
  const auto parameters = attention.named_parameters();
  const auto get = [&](const std::string& name) {
    return parameters.contains(name) ? parameters[name].detach() : Tensor();
  };
  const auto rows = [](const Tensor& matrix, int64_t first, int64_t count) {
    return matrix.defined() ? matrix.narrow(0, first, count) : matrix;
  };
  const auto H = attention.shape().H(), G = attention.shape().G(), V = c.value_width;
  Tensor q, k, v;
  if (c.cross) {
    const auto w = get("project.memory_weight"), b = get("project.memory_bias");
    q = reference::project(x, get("project.query_weight"), get("project.query_bias"), K);
    k = reference::project(memory, rows(w, 0, G * K), rows(b, 0, G * K), K);
    v = reference::project(memory, rows(w, G * K, G * V), rows(b, G * K, G * V), V);
  } else {
    const auto w = get("project.weight"), b = get("project.bias");
    q = reference::project(x, rows(w, 0, H * K), rows(b, 0, H * K), K);
    k = reference::project(x, rows(w, H * K, G * K), rows(b, H * K, G * K), K);
    v = reference::project(x, rows(w, (H + G) * K, G * V), rows(b, (H + G) * K, G * V), V);
  }
  if (c.rope) {
    q = reference::rotate(q, 10000);
    k = reference::rotate(k, 10000);
  }
  std::vector<int64_t> group_of;
  for (auto head : attention.heads()) {
    const auto original = head / (c.heads / c.groups);
    const auto& groups = attention.shape().groups;
    group_of.push_back(std::find(groups.begin(), groups.end(), original) - groups.begin());
  }
  if (c.mixed) {
    const auto mixed = [&](const Tensor& x_BGSK, const Tensor& lambda) {
      auto y = torch::zeros({x_BGSK.size(0), H, x_BGSK.size(2), x_BGSK.size(3)}, torch::kFloat64);
      for (int64_t h = 0; h < H; ++h)
        for (int64_t g = 0; g < G; ++g) y.select(1, h).add_(x_BGSK.select(1, g), lambda[g][h].item<double>());
      return y;
    };
    k = mixed(k, get("then0.key_mix"));
    v = mixed(v, get("then0.value_mix"));
    for (int64_t h = 0; h < H; ++h) group_of[h] = h;
  }
  const auto sees = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    if (see.causal && s > t) return false;
    if (see.key_mask_BS.defined() && !see.key_mask_BS[b][s].item<bool>()) return false;
    if (c.windows.empty()) return true;
    const auto window = c.windows[c.windows.size() == 1 ? 0 : attention.heads()[h]];
    return window == 0 || std::abs(t - s) <= window - 1;
  };
  const auto root = std::sqrt(static_cast<double>(K));
  reference::Scores scores = reference::dot_products(q, k, group_of, c.factor.value_or(1 / root));
  if (c.additive) {
    const auto w_q = reference::in_double(get("weigh.score.query_weight")),
               w_k = reference::in_double(get("weigh.score.key_weight"));
    const auto bias = reference::in_double(get("weigh.score.bias")),
               w = reference::in_double(get("weigh.score.weight"));
    scores = [=, A = c.additive](int64_t b, int64_t h, int64_t t, int64_t s) {
      const auto of_q = w_q.accessor<double, 3>()[h], of_k = w_k.accessor<double, 3>()[h];
      const auto query = q.accessor<double, 4>()[b][h][t], key = k.accessor<double, 4>()[b][group_of[h]][s];
      double sum = 0;
      for (int64_t a = 0; a < A; ++a) {
        double hidden = bias.accessor<double, 2>()[h][a];
        for (int64_t i = 0; i < K; ++i) hidden += of_q[a][i] * query[i] + of_k[a][i] * key[i];
        sum += w.accessor<double, 2>()[h][a] * std::tanh(hidden);
      }
      return sum;
    };
  }
  if (!c.alibi.empty()) {
    // Of 6 heads: those of 4, then every other one of 8.
    const std::vector<double> slopes{1 / 4.0, 1 / 16.0, 1 / 64.0, 1 / 256.0, 1 / 2.0, 1 / 8.0};
    scores = [=, of = scores, &attention](int64_t b, int64_t h, int64_t t, int64_t s) {
      const auto fall = slopes[attention.heads()[h]] * static_cast<double>(std::abs(t - s));
      return of(b, h, t, s) - (c.alibi == "inside" ? fall / root : fall);
    };
  }
  auto z = reference::weigh_by(scores, q.size(2), v, group_of, sees);
  if (c.gated) {
    std::vector<double> gate;
    const auto alpha = get(c.windows.empty() ? "gate0.log_alpha" : "gate1.log_alpha");
    const auto scale = 1 + get(c.windows.empty() ? "gate1.change" : "gate2.change");
    for (int64_t h = 0; h < H; ++h) {
      const auto open = 1.2 / (1 + std::exp(-alpha[h].item<double>())) - 0.1;
      gate.push_back(std::clamp(open, 0.0, 1.0) * scale[h].item<double>());
    }
    z = reference::scale(z, gate);
  }
  return reference::concatenate(z, get("mix.weight"), get("mix.bias"));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const std::function<void(Case&)>& change) {
    Case c{.name = name};
    change(c);
    all.push_back(c);
  };
  add("causal", [](Case&) {});
  add("bidirectional, padded", [](Case& c) { c.causal = false, c.padded = true; });
  add("no bias", [](Case& c) { c.bias = false; });
  add("one head", [](Case& c) { c.heads = c.groups = 1; });
  for (int64_t groups : {1, 2, 3}) add("groups " + std::to_string(groups), [&](Case& c) { c.groups = groups; });
  add("3 of 6 heads over 2 groups: 2 and 1", [](Case& c) { c.groups = 2, c.kept = {0, 2, 5}; });
  add("4 of 6 heads over 2 groups: 1 and 3", [](Case& c) { c.groups = 2, c.kept = {1, 3, 4, 5}; });
  add("a group goes with its last head", [](Case& c) { c.groups = 2, c.kept = {3, 5}; });
  add("cross", [](Case& c) { c.cross = true, c.causal = false; });
  add("cross, padded, grouped", [](Case& c) { c.cross = c.padded = true, c.causal = false, c.groups = 3; });
  add("cross, heads removed", [](Case& c) { c.cross = true, c.causal = false, c.groups = 3, c.kept = {0, 4}; });
  add("rope", [](Case& c) { c.rope = true; });
  add("factor", [](Case& c) { c.factor = 0.3; });
  add("windows", [](Case& c) { c.windows = {1, 2, 0, 3, 7, 100}; });
  add("one window", [](Case& c) { c.windows = {2}; });
  add("windows, bidirectional, padded",
      [](Case& c) { c.windows = {1, 2, 0, 3, 7, 100}, c.causal = false, c.padded = true; });
  add("windows over groups, rope", [](Case& c) { c.windows = {1, 2, 0, 3, 2, 2}, c.groups = 2, c.rope = true; });
  add("windows, heads removed", [](Case& c) { c.windows = {1, 2, 0, 3, 2, 2}, c.kept = {1, 2, 4}; });
  add("gates in series", [](Case& c) { c.gated = true; });
  add("windows and gates", [](Case& c) { c.gated = true, c.windows = {1, 2, 0, 3, 7, 100}; });
  add("mixed heads", [](Case& c) { c.mixed = true; });
  add("mixed components, rope", [](Case& c) { c.mixed = c.rope = true, c.groups = 3; });
  add("mixed, heads removed", [](Case& c) { c.mixed = true, c.kept = {0, 3}; });
  for (int64_t width : {1, 3, 7}) {
    const auto name = "values of width " + std::to_string(width);
    add(name, [&](Case& c) { c.value_width = width; });
    add(name + ", cross, grouped, padded",
        [&](Case& c) { c.value_width = width, c.cross = c.padded = true, c.causal = false, c.groups = 2; });
    add(name + ", heads removed", [&](Case& c) { c.value_width = width, c.groups = 3, c.kept = {0, 1, 5}; });
    add(name + ", windows, gates",
        [&](Case& c) { c.value_width = width, c.gated = true, c.windows = {1, 2, 0, 3, 7, 100}; });
  }
  add("wide values, one short window", [](Case& c) { c.value_width = 6, c.windows = {2}; });
  add("narrow values of mixed components, no bias",
      [](Case& c) { c.value_width = 2, c.mixed = true, c.groups = 3, c.bias = false; });
  for (const std::string where : {"outside", "inside"}) {
    add("alibi " + where, [&](Case& c) { c.alibi = where; });
    add("alibi " + where + ", bidirectional, padded",
        [&](Case& c) { c.alibi = where, c.causal = false, c.padded = true; });
    add("alibi " + where + ", heads removed, grouped",
        [&](Case& c) { c.alibi = where, c.groups = 2, c.kept = {1, 4, 5}; });
    add("alibi " + where + ", windows, values of width 3",
        [&](Case& c) { c.alibi = where, c.windows = {1, 2, 0, 3, 7, 100}, c.value_width = 3; });
  }
  add("additive", [](Case& c) { c.additive = 5; });
  add("additive, bidirectional, padded", [](Case& c) { c.additive = 3, c.causal = false, c.padded = true; });
  add("additive, cross, grouped",
      [](Case& c) { c.additive = 2, c.cross = c.padded = true, c.causal = false, c.groups = 3; });
  add("additive, heads removed", [](Case& c) { c.additive = 4, c.kept = {0, 3, 4}; });
  add("additive, windows over groups, rope",
      [](Case& c) { c.additive = 3, c.windows = {1, 2, 0, 3, 2, 2}, c.groups = 2, c.rope = true; });
  add("additive, alibi, values of width 2", [](Case& c) { c.additive = 3, c.alibi = "inside", c.value_width = 2; });
  return all;
}

}  // namespace

TEST_CASE("the walk equals plain loops") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    DefaultDtype guard(type);
    const double close = type == torch::kFloat64 ? 1e-12 : 2e-5;
    const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D + 2}, "memory");
    for (const auto& c : cases()) {
      INFO(c.name << ", " << torch::toString(type));
      auto attention = make_attention(options_of(c), D, c.cross, std::nullopt, c.cross ? D + 2 : D);
      if (!c.kept.empty()) attention->keep(c.kept);
      Visibility see;
      see.causal = c.causal;
      if (c.padded) see.key_mask_BS = c.cross ? mask_of({S, S - 3}, S) : mask_of({T, T - 2}, T);
      torch::NoGradGuard no_grad;
      Forward run;
      const auto y = attention->forward(call_of(x, run, see, c.cross ? memory : Tensor()));
      const auto expected = by_loops(c, *attention, x, memory, see);
      CHECK(difference(y, expected) < close);
      LambdaTap tap([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
      Forward looked;
      looked.taps = {&tap};
      CHECK(difference(attention->forward(call_of(x, looked, see, c.cross ? memory : Tensor())), expected) < close);
    }
  }
}

TEST_CASE("an attention's output is its heads' shares and a bias") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(options_of({.name = ""}), D);
  torch::NoGradGuard no_grad;
  Tensor o;
  LambdaTap tap([](At at, Site) { return at == At::o; }, [&](At, Site, Tensor value) { return o = value; });
  Forward run;
  run.taps = {&tap};
  const auto y = attention->forward(call_of(x, run, causal()));
  CHECK(shape_text(o) == "[2, 6, 7, 12]");
  CHECK(difference(o.sum(1) + attention->named_parameters()["mix.bias"], y) < 1e-12);
  // What replaces a head's share is the head's share.
  LambdaTap without([](At at, Site) { return at == At::o; },
                    [](At, Site, Tensor value) {
                      value = value.clone();
                      value.select(1, 2).zero_();
                      return value;
                    });
  Forward second, masked;
  second.taps = {&without};
  masked.scale[Stack::dec_self] = torch::ones({1, 6});
  masked.scale[Stack::dec_self][0][2] = 0;
  CHECK(difference(attention->forward(call_of(x, second, causal())), attention->forward(call_of(x, masked, causal()))) <
        1e-12);
}

TEST_CASE("a tap can replace an attention's input, weights, queries, keys and values") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), other = noise({B, T, D}, "other");
  auto attention = make_attention(options_of({.name = ""}), D);
  Forward plain;
  const auto of_other = attention->forward(call_of(other, plain, causal()));
  std::map<At, Tensor> seen;
  LambdaTap look([](At at, Site) { return at == At::q || at == At::k || at == At::v; },
                 [&](At at, Site, Tensor value) { return seen[at] = value; });
  Forward looking;
  looking.taps = {&look};
  attention->forward(call_of(other, looking, causal()));
  LambdaTap input([](At at, Site) { return at == At::x; }, [&](At, Site, Tensor) { return other; });
  LambdaTap parts([](At at, Site) { return at == At::q || at == At::k || at == At::v; },
                  [&](At at, Site, Tensor) { return seen.at(at); });
  for (auto* tap : {&input, &parts}) {
    Forward run;
    run.taps = {tap};
    CHECK(difference(attention->forward(call_of(x, run, causal())), of_other) < 1e-12);
  }
  // Each token looks at itself alone: z = v.
  Tensor z, v;
  LambdaTap self([](At at, Site) { return at == At::weights || at == At::z || at == At::v; },
                 [&](At at, Site, Tensor value) {
                   if (at == At::weights) return torch::eye(T).expand_as(value).contiguous();
                   (at == At::z ? z : v) = value;
                   return value;
                 });
  Forward run;
  run.taps = {&self};
  attention->forward(call_of(x, run, causal()));
  CHECK(difference(z, v) < 1e-12);
}

TEST_CASE("an attention without heads gives its bias, and one without heads or bias gives zeros") {
  for (const bool bias : {true, false}) {
    Case c{.name = "", .bias = bias};
    auto attention = make_attention(options_of(c), D);
    attention->keep({});
    CHECK(attention->heads().empty());
    CHECK(attention->original_heads() == 6);
    const auto x = noise({B, T, D}, "x");
    Forward run;
    run.scale[Stack::dec_self] = torch::ones({1, 6});
    const auto y = attention->forward(call_of(x, run, causal()));
    if (bias) {
      CHECK(torch::equal(y, attention->named_parameters()["mix.bias"].expand_as(x)));
      y.sum().backward();
      CHECK(attention->named_parameters()["mix.bias"].grad().eq(B * T).all().item<bool>());
    } else {
      CHECK(y.abs().max().item<float>() == 0);
    }
    auto again = std::dynamic_pointer_cast<Attention>(attention->clone());
    CHECK(torch::equal(again->forward(call_of(x, run, causal())), y));
  }
}

TEST_CASE("heads are few blocks: one for each window and group ratio") {
  const auto q = torch::rand({1, 6, 4, 2}), kv = torch::rand({1, 3, 4, 2});
  CHECK(cut_blocks(q, kv, kv, {0, 0, 1, 1, 2, 2}, {}).size() == 1);
  CHECK(cut_blocks(q, kv, kv, {0, 0, 0, 1, 2, 2}, {}).size() == 3);
  CHECK(cut_blocks(q, kv, kv, {0, 0, 1, 1, 2, 2}, {3, 3, 0, 0, 3, 3}).size() == 2);
  const auto whole = cut_blocks(q, kv, kv, {0, 0, 1, 1, 2, 2}, {});
  CHECK(whole[0].q_BHTK.data_ptr() == q.data_ptr());  // nothing is copied where nothing is cut
  std::set<int64_t> heads;
  for (const auto& block : cut_blocks(q, kv, kv, {0, 0, 0, 1, 2, 2}, {1, 2, 1, 2, 1, 2})) {
    CHECK(block.q_BHTK.size(1) % block.k_BGSK.size(1) == 0);
    for (auto head : block.heads) CHECK(heads.insert(head).second);
  }
  CHECK(heads.size() == 6);
}

TEST_CASE("mistakes in shapes say where, what was expected and what came") {
  auto attention = make_attention(options_of({.name = ""}), D);
  Forward run;
  CHECK_THROWS_WITH(attention->forward(call_of(torch::rand({B, T, D + 1}), run)),
                    "dec.self.0.x: expected [B, T, 12], got [2, 7, 13]");
  auto cross = make_attention(options_of({.name = "", .cross = true}), D, true);
  CHECK_THROWS_WITH(cross->forward(call_of(torch::rand({B, T, D}), run, {}, torch::rand({B, S, D - 1}))),
                    "dec.self.0.memory: expected [B, S, 12], got [2, 5, 11]");
  run.scale[Stack::dec_self] = torch::ones({1, 5});
  CHECK_THROWS_WITH(
      attention->forward(call_of(torch::rand({B, T, D}), run)),
      "dec.self scale: expected [layers, heads] or [B, layers, heads] with at least 1 layers and 6 heads, got [1, 5]");
  AttentionOptions odd;
  odd.heads = 5;
  CHECK_THROWS_WITH(Attention(odd, D, D, false),
                    "attention.heads: expected a divisor of d_model (12) or a head_width, got 5");
  CHECK_THROWS_WITH(Attention(options_of({.name = "", .groups = 4}), D, D, false),
                    "project.groups: expected a divisor of heads (6), got 4");
  attention->keep({1, 2});
  CHECK_THROWS_AS(attention->keep({0}), ShapeError);
}

}  // namespace headlab
