// native_sparse against loops in double precision, and the walk's support of heads that keep some tokens alone.
#include "modules/attention/gate/native_sparse.h"

#include <cmath>

#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/kept.h"
#include "modules/base/error.h"
#include "modules/layer/segments.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

constexpr int64_t D = 12, K = 4;

AttentionOptions with_sparse(const std::function<void(NativeSparseOptions&)>& change, int64_t heads = 6, int64_t groups = 6) {
  AttentionOptions options;
  options.heads = heads;
  options.head_width = K;
  if (groups != heads) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = groups;
  }
  options.position.choose("rope");
  options.gates.items.emplace_back(gate_catalogue, "native_sparse");
  options.gates.items.back().as<NativeSparseOptions>().balance = "none";
  change(options.gates.items.back().as<NativeSparseOptions>());
  return options;
}

NativeSparse& gate_of(const Attention& attention) { return dynamic_cast<NativeSparse&>(*attention.gate_list().front()); }

/// m[b][g][t], as loops pick it: every token for the first `shared` groups, of the others the `active` most probable
/// ones.
struct Picked {
  std::vector<std::vector<std::vector<int>>> m;
  std::vector<std::vector<std::vector<double>>> g;
};

Picked picked_by_loops(const Tensor& x_BTD, const Tensor& weight_GD, int64_t active, int64_t shared) {
  const auto x = x_BTD.accessor<double, 3>();
  const auto w = weight_GD.accessor<double, 2>();
  const auto B = x.size(0), T = x.size(1), G = w.size(0);
  Picked picked;
  picked.m.assign(B, std::vector<std::vector<int>>(G, std::vector<int>(T, 0)));
  picked.g.assign(B, std::vector<std::vector<double>>(G, std::vector<double>(T, 0)));
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      std::vector<double> e(G, 0);
      double sum = 0;
      for (int64_t g = shared; g < G; ++g) {
        double l = 0;
        for (int64_t d = 0; d < x.size(2); ++d) l += x[b][t][d] * w[g][d];
        sum += e[g] = std::exp(l);
      }
      for (int64_t g = 0; g < G; ++g) {
        int64_t larger = 0;
        for (int64_t other = shared; other < G; ++other) larger += e[other] > e[g];
        picked.m[b][g][t] = g < shared || larger < active;
        picked.g[b][g][t] = g < shared ? 1 : picked.m[b][g][t] * e[g] / sum;
      }
    }
  return picked;
}

/// The attention by loops: only pairs of tokens that a head keeps, rotated by their places among these.
Tensor by_loops(const Attention& attention, const Tensor& x, int64_t active, int64_t shared, bool causal, std::optional<int64_t> window = {},
                const Tensor& mask = {}) {
  const auto parameters = attention.named_parameters();
  const auto H = attention.shape().H(), G = attention.shape().G();
  const auto w = parameters["project.weight"].detach(), c = parameters["project.bias"].detach();
  const auto rows = [&](int64_t from, int64_t count) { return reference::project(x, w.narrow(0, from, count), c.narrow(0, from, count), K); };
  const auto q = rows(0, H * K), k = rows(H * K, G * K), v = rows((H + G) * K, G * K);
  const auto p = picked_by_loops(x, parameters["gate0.weight"].detach(), active, shared);
  const auto place = [&](int64_t b, int64_t g, int64_t t) {
    int64_t before = -1;
    for (int64_t s = 0; s <= t; ++s) before += p.m[b][g][s];
    return before;
  };
  const auto& group_of = attention.shape().group_of;
  const auto turned = [&](const Tensor& y, int64_t b, int64_t h, int64_t t, int64_t position, int64_t i) {
    const auto pair = i / 2 * 2;
    const auto angle = static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(pair) / K);
    const auto one = y[b][h][t][pair].item<double>(), two = y[b][h][t][pair + 1].item<double>();
    return i == pair ? one * std::cos(angle) - two * std::sin(angle) : one * std::sin(angle) + two * std::cos(angle);
  };
  const reference::Scores scores = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    double sum = 0;
    for (int64_t i = 0; i < K; ++i)
      sum += turned(q, b, h, t, place(b, group_of[h], t), i) * turned(k, b, group_of[h], s, place(b, group_of[h], s), i);
    return sum / std::sqrt(static_cast<double>(K));
  };
  const reference::Sees sees = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    const auto g = group_of[h];
    if (mask.defined() && !mask[b][s].item<bool>()) return false;
    if (window && g < shared && std::abs(t - s) >= *window) return false;
    return p.m[b][g][t] && p.m[b][g][s] && (!causal || s <= t);
  };
  auto z = reference::weigh_by(scores, x.size(1), v, group_of, sees);
  for (int64_t b = 0; b < z.size(0); ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < z.size(2); ++t) z[b][h][t] *= p.g[b][group_of[h]][t];
  return reference::concatenate(z, parameters["mix.weight"].detach(), parameters["mix.bias"].detach());
}

Tensor in_chunks(Attention& attention, const Tensor& x, const std::vector<int64_t>& chunks) {
  State state;
  std::vector<Tensor> parts;
  int64_t read = 0;
  for (const auto length : chunks) {
    Forward run;
    auto call = call_of(x.narrow(1, read, length), run, causal());
    call.q_pos = call.k_pos = torch::arange(read, read + length);
    call.state = &state;
    parts.push_back(attention.forward(call));
    read += length;
  }
  CHECK(state.length() == read);
  return torch::cat(parts, 1);
}

double balance_of(Attention& attention, const Tensor& x, const Tensor& mask = {}) {
  attention.train();
  Forward run;
  run.noise_seed = 5;
  auto see = causal();
  see.query_mask_BT = mask;
  attention.forward(call_of(x, run, see));
  REQUIRE(run.aux.size() == 1);
  return (run.aux[0].sum / run.aux[0].count).item<double>();
}

}  // namespace

TEST_CASE("a head of native_sparse sees the tokens alone that picked it, at their places among these", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 9, D}, "x");
  for (const int64_t groups : {6, 3})
    for (const int64_t shared : {0, 1})
      for (const bool is_causal : {true, false})
        for (const std::optional<int64_t> window : {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
          if (window && shared == 0) continue;
          INFO(groups << " groups, " << shared << " shared, " << (is_causal ? "causal" : "both ways") << (window ? ", window" : ""));
          const auto attention = make_attention(with_sparse([&](auto& o) { o.shared = shared, o.window = window; }, 6, groups), D);
          Visibility see;
          see.causal = is_causal;
          if (!is_causal) see.key_mask_BS = mask_of({9, 6}, 9);
          Forward run;
          const auto y = attention->forward(call_of(x, run, see));
          const auto expected = by_loops(*attention, x, 2, shared, is_causal, window, see.key_mask_BS);
          CHECK(difference(y.narrow(1, 0, 6), expected.narrow(1, 0, 6)) < 1e-12);
          if (is_causal) CHECK(difference(y, expected) < 1e-12);
        }
}

TEST_CASE("all heads picked, with weights of one, are multi-head attention", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 9, D}, "x");
  // Shared heads have weight 1; one head of six is left to pick, and softmax over one gives 1.
  const auto sparse = make_attention(with_sparse([](auto& o) { o.active = 1, o.shared = 5; }), D);
  auto options = with_sparse([](auto&) {});
  options.gates.items.clear();
  const auto plain = make_attention(options, D);
  auto to = plain->named_parameters();
  for (const auto& item : sparse->named_parameters())
    if (to.contains(item.key())) to[item.key()].copy_(item.value());
  Forward run;
  CHECK(difference(sparse->forward(call_of(x, run, causal())), plain->forward(call_of(x, run, causal()))) < 1e-12);
}

TEST_CASE("reading token by token or in chunks of any size gives what one pass gives, over what heads keep", "[gate][paper-28]") {
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const DefaultDtype guard(type);
    const double close = type == torch::kFloat64 ? 1e-12 : 1e-5;
    const auto x = noise({2, 11, D}, "x");
    for (const int64_t groups : {6, 3})
      for (const std::string positions : {"own", "global"})
        for (const int64_t shared : {0, 1}) {
          INFO(groups << " groups, positions " << positions << ", shared " << shared);
          auto options = with_sparse([&](auto& o) {
            o.positions = positions;
            o.shared = shared;
            if (shared) o.window = 3;
          }, 6, groups);
          options.gates.items.insert(options.gates.items.begin(), Choice(gate_catalogue, "scalar"));
          options.gates.items.emplace_back(gate_catalogue, "head_norm");
          const auto attention = make_attention(options, D);
          Forward run;
          const auto full = attention->forward(call_of(x, run, causal()));
          for (const std::vector<int64_t>& chunks : {std::vector<int64_t>(11, 1), {11}, {1, 10}, {4, 3, 4}, {5, 1, 1, 4}, {10, 1}})
            CHECK(difference(in_chunks(*attention, x, chunks), full) < close);
        }
  }
}

TEST_CASE("segments with a memory count places from the memory on: scores, which know distances alone, are the same", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 11, D}, "x");
  for (const int64_t groups : {6, 3}) {
    const auto attention = make_attention(with_sparse([](auto&) {}, 6, groups), D);
    for (const int64_t length : {3, 4, 11}) {
      SegmentOptions segments;
      segments.length = length;
      segments.memory = 2;
      Forward run, seen;
      LambdaTap tap([](At at, Site) { return at == At::z; }, [](At, Site, Tensor z) { return z; });
      seen.taps = {&tap};  // a tap has the text read in one call that hides what lies before the memory
      CHECK(difference(attend_in_segments(*attention, segments, call_of(x, run, causal())),
                       attend_in_segments(*attention, segments, call_of(x, seen, causal()))) < 1e-12);
    }
  }
}

TEST_CASE("long texts are computed over what heads keep alone, with the numbers and gradients of the mask", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto T = shortest_packed + 40;
  for (const int64_t groups : {6, 3})
    for (const int64_t shared : {0, 1})
      for (const bool is_causal : {true, false}) {
        INFO(groups << " groups, " << shared << " shared, " << (is_causal ? "causal" : "both ways"));
        const auto attention = make_attention(with_sparse([&](auto& o) { o.active = 1, o.shared = shared; }, 6, groups), D);
        Visibility see;
        see.causal = is_causal;
        if (!is_causal) see.key_mask_BS = mask_of({T, T - 70}, T);
        const auto weight = noise({2, T, D}, "loss") * mask_of({T, T - 70}, T).unsqueeze(-1);
        const auto gradients = [&](bool masked, std::map<std::string, int>& operators) {
          const auto x = noise({2, T, D}, "x").requires_grad_();
          Forward run;
          // A mask of nothing is a mask: the call is not packed.
          if (masked) see.allowed_BTS = torch::ones({T, T}, torch::kBool);
          else see.allowed_BTS = Tensor();
          Tensor y;
          operators = operators_of([&] { y = attention->forward(call_of(x, run, see)); });
          std::vector<Tensor> all{x};
          for (const auto& item : attention->named_parameters()) all.push_back(item.value());
          auto found = torch::autograd::grad({(y * weight).sum()}, all, {}, {}, false, true);
          for (auto& one : found)
            if (!one.defined()) one = torch::zeros({1});
          found.push_back((y * mask_of({T, T - 70}, T).unsqueeze(-1)).detach());
          return found;
        };
        std::map<std::string, int> with_mask, without;
        const auto expected = gradients(true, with_mask), got = gradients(false, without);
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) < 1e-10);
        CHECK(with_mask.count("aten::index_copy") == 0);
        CHECK(without.count("aten::index_copy") == 1);
      }
}

TEST_CASE("the fp loss is 1 where picks or probabilities are uniform, and H sum f p by hand", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto attention = make_attention(with_sparse([](auto& o) { o.balance = "fp", o.weight = 1; }), D);
  auto weight = attention->named_parameters()["gate0.weight"];
  const auto x = noise({2, 9, D}, "x");
  const auto mask = mask_of({9, 5}, 9);
  double by_hand = 0;
  {
    const auto w = weight.detach();
    const auto p = picked_by_loops(x, w, 2, 0);
    const auto a = torch::softmax(x.matmul(w.t()), -1);
    for (int64_t g = 0; g < 6; ++g) {
      double f = 0, mean = 0;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t t = 0; t < (b == 0 ? 9 : 5); ++t) {
          f += p.m[b][g][t] / (14.0 * 2);
          mean += a[b][t][g].item<double>() / 14;
        }
      by_hand += 6 * f * mean;
    }
  }
  CHECK(balance_of(*attention, x, mask) == Approx(by_hand).epsilon(1e-12));
  weight.zero_();  // uniform probabilities, whatever is picked
  CHECK(balance_of(*attention, x) == Approx(1).epsilon(1e-12));
  // Uniform picks: each of six inputs prefers its own two heads.
  Tensor ones = torch::zeros({1, 3, D});
  for (int64_t t = 0; t < 3; ++t) {
    ones[0][t][t] = 1;
    weight[2 * t][t] = 1;
    weight[2 * t + 1][t] = 1;
  }
  CHECK(balance_of(*attention, ones) == Approx(1).epsilon(1e-12));
}

TEST_CASE("the cv loss is the squared variation of probabilities and of expected loads, which are 0 and near 0 at the start", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 200, D}, "x");
  const auto loss = [&](double importance, double load, bool zero) {
    const auto attention = make_attention(with_sparse([&](auto& o) { o.balance = "cv", o.weight = 1, o.importance = importance, o.load = load; }), D);
    auto parameters = attention->named_parameters();
    if (zero) {
      parameters["gate0.weight"].zero_();
      parameters["gate0.noise_weight"].zero_();
    }
    const auto found = balance_of(*attention, x);
    const auto a_E = torch::softmax(x.matmul(parameters["gate0.weight"].t()), -1).sum({0, 1});
    const auto by_hand = importance * ((a_E - a_E.mean()).square().mean() / a_E.mean().square()).item<double>();
    if (load == 0) CHECK(found == Approx(by_hand).margin(1e-12));
    return found;
  };
  CHECK(loss(1, 0, true) == Approx(0).margin(1e-12));
  CHECK(loss(1, 0, false) > 1e-4);
  CHECK(loss(0, 1, true) < 0.01);  // equal logits, noise alone: loads differ by chance
  CHECK(loss(0, 1, false) > loss(0, 1, true));
}

TEST_CASE("the bias of loss_free moves by its rate against the load, once an optimiser step, and picks by it while weights stay", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto attention = make_attention(with_sparse([](auto& o) { o.balance = "loss_free", o.rate = 0.5, o.active = 1; }), D);
  auto& gate = gate_of(*attention);
  const auto x = noise({2, 9, D}, "x");
  attention->train();
  Forward run;
  attention->forward(call_of(x, run, causal()));
  CHECK(run.aux.empty());
  const auto p = picked_by_loops(x, attention->named_parameters()["gate0.weight"], 1, 0);
  gate.update({Stack::dec_self, 0}, run.stats);
  gate.update({Stack::dec_self, 1}, run.stats);  // of another site: nothing
  const auto bias = attention->named_buffers()["gate0.bias"];
  for (int64_t g = 0; g < 6; ++g) {
    double load = 0;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t t = 0; t < 9; ++t) load += p.m[b][g][t];
    CHECK(bias[g].item<double>() == (load < 3 ? 0.5 : load > 3 ? -0.5 : 0));
  }
  // With a bias that outweighs all probabilities each token picks head 4, with the weight that its softmax gives.
  bias.zero_();
  bias[4] = 10;
  HeadPlan plan;
  Forward other;
  const auto call = call_of(x, other, causal());
  attention->eval();
  gate.plan(plan, call);
  CHECK(plan.held_BGS.select(1, 4).all().item<bool>());
  CHECK(plan.held_BGS.sum().item<int64_t>() == 18);
  const auto a = torch::softmax(x.matmul(attention->named_parameters()["gate0.weight"].t()), -1);
  const auto z = gate.weigh(torch::ones({2, 6, 9, K}), plan, call);
  CHECK(difference(z.select(1, 4).select(-1, 0), a.select(-1, 4)) < 1e-12);
  CHECK(z.slice(1, 0, 4).abs().max().item<double>() == 0);
}

TEST_CASE("native_sparse has 4 H D K + H D parameters, keeps T K pairs, and its pairs are T^2 K^2 / 2H + T K / 2", "[gate][paper-28][cost]") {
  const torch::NoGradGuard no_grad;
  constexpr int64_t H = 8, A = 2, T = 64, width = 32;
  AttentionOptions options;
  options.heads = H;
  options.head_width = K;
  options.project.as<StandardProjectOptions>().bias = false;
  options.mix.as<ConcatenateOptions>().bias = false;
  options.gates.items.emplace_back(gate_catalogue, "native_sparse");
  const auto attention = make_attention(options, width);
  int64_t parameters = 0;
  for (const auto& parameter : attention->parameters()) parameters += parameter.numel();
  CHECK(parameters == 4 * H * width * K + H * width);
  HeadPlan plan;
  Forward run;
  const auto x = noise({1, T, width}, "x");
  gate_of(*attention).plan(plan, call_of(x, run, causal()));
  const auto n_H = plan.held_BGS[0].sum(-1).to(torch::kFloat64);
  CHECK(n_H.sum().item<double>() == T * A);  // keys and values that all heads together keep
  const auto cv2 = ((n_H - n_H.mean()).square().mean() / n_H.mean().square()).item<double>();
  const auto pairs = (n_H * (n_H + 1) / 2).sum().item<double>();
  CHECK(pairs == Approx(T * T * A * A * (1 + cv2) / (2.0 * H) + T * A / 2.0).epsilon(1e-12));
  // Counted at equal loads: queries, keys and values of the picked alone, their pairs, their part of the output, and
  // the router.
  const auto equal = T * T * A * A / (2 * H) + T * A / 2;
  CHECK(attention->flops(T, T, true) == 2 * T * width * H + 3 * 2 * T * width * A * K + 2 * equal * (K + K) + 2 * T * A * K * width);
  CHECK(attention->flops(T, T, false) - attention->flops(T, T, true) == 2 * (T * T * A * A / H - equal) * (K + K));
  // The cache itself is not packed.
  CHECK(attention->cache_numbers() == H * 2 * K);
}

TEST_CASE("native_sparse says what it can't be part of", "[gate][paper-28]") {
  const auto problems = [](const AttentionOptions& options, bool cross = false) {
    Problems found;
    attention_rules(options, D, cross, "attention", found);
    std::string text;
    for (const auto& problem : found.found) text += problem.field + ": " + problem.message + "\n";
    return text;
  };
  CHECK(problems(with_sparse([](auto&) {})).empty());
  CHECK_THAT(problems(with_sparse([](auto& o) { o.active = 3, o.shared = 1; }, 6, 3)), ContainsSubstring("gates[0].active: expected at most the number of key/value heads (3)"));
  auto twice = with_sparse([](auto&) {});
  twice.gates.items.push_back(twice.gates.items.front());
  CHECK_THAT(problems(twice), ContainsSubstring("a token picks its heads once"));
  auto windowed = with_sparse([](auto& o) { o.shared = 1, o.window = 4; });
  windowed.gates.items.emplace_back(gate_catalogue, "windows");
  windowed.gates.items.back().as<WindowsOptions>().windows = {2};
  CHECK_THAT(problems(windowed), ContainsSubstring("windows can't stand beside native_sparse: a head has one window"));
  CHECK_THAT(problems(with_sparse([](auto&) {}), true), ContainsSubstring("native_sparse: expected a self-attention"));
  CHECK_THROWS_AS(make_attention(with_sparse([](auto& o) { o.active = 7; }), D), ShapeError);
  Problems own;
  NativeSparseOptions lone;
  lone.window = 3;
  lone.rules(own);
  CHECK(own.found.size() == 1);
}

}  // namespace headlab
