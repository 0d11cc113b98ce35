// native_sparse against loops in double precision, and the walk's support of heads that keep some tokens alone.
#include "modules/attention/gate/native_sparse.h"

#include <cmath>
#include <map>

#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/kept.h"
#include "modules/base/error.h"
#include "modules/layer/segments.h"
#include "modules/tensor/autocast.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

constexpr int64_t D = 12, K = 4;

AttentionOptions with_sparse(const std::function<void(NativeSparseOptions&)>& change, int64_t heads = 6,
                             int64_t groups = 6) {
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

NativeSparse& gate_of(const Attention& attention) {
  return dynamic_cast<NativeSparse&>(*attention.gate_list().front());
}

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
Tensor by_loops(const Attention& attention, const Tensor& x, int64_t active, int64_t shared, bool causal,
                std::optional<int64_t> window = {}, const Tensor& mask = {}) {
  const auto parameters = attention.named_parameters();
  const auto H = attention.shape().H(), G = attention.shape().G();
  const auto w = parameters["project.weight"].detach(), c = parameters["project.bias"].detach();
  const auto rows = [&](int64_t from, int64_t count) {
    return reference::project(x, w.narrow(0, from, count), c.narrow(0, from, count), K);
  };
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
      sum +=
          turned(q, b, h, t, place(b, group_of[h], t), i) * turned(k, b, group_of[h], s, place(b, group_of[h], s), i);
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

TEST_CASE("a head of native_sparse sees the tokens alone that picked it, at their places among these",
          "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 9, D}, "x");
  for (const int64_t groups : {6, 3})
    for (const int64_t shared : {0, 1})
      for (const bool is_causal : {true, false})
        for (const std::optional<int64_t> window : {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
          if (window && shared == 0) continue;
          INFO(groups << " groups, " << shared << " shared, " << (is_causal ? "causal" : "both ways")
                      << (window ? ", window" : ""));
          const auto attention =
              make_attention(with_sparse([&](auto& o) { o.shared = shared, o.window = window; }, 6, groups), D);
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

TEST_CASE("reading token by token or in chunks of any size gives what one pass gives, over what heads keep",
          "[gate][paper-28]") {
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const DefaultDtype guard(type);
    const double close = type == torch::kFloat64 ? 1e-12 : 1e-5;
    const auto x = noise({2, 11, D}, "x");
    for (const int64_t groups : {6, 3})
      for (const std::string positions : {"own", "global"})
        for (const int64_t shared : {0, 1}) {
          INFO(groups << " groups, positions " << positions << ", shared " << shared);
          auto options = with_sparse(
              [&](auto& o) {
                o.positions = positions;
                o.shared = shared;
                if (shared) o.window = 3;
              },
              6, groups);
          options.gates.items.insert(options.gates.items.begin(), Choice(gate_catalogue, "scalar"));
          options.gates.items.emplace_back(gate_catalogue, "head_norm");
          const auto attention = make_attention(options, D);
          Forward run;
          const auto full = attention->forward(call_of(x, run, causal()));
          for (const std::vector<int64_t>& chunks :
               {std::vector<int64_t>(11, 1), {11}, {1, 10}, {4, 3, 4}, {5, 1, 1, 4}, {10, 1}})
            CHECK(difference(in_chunks(*attention, x, chunks), full) < close);
        }
  }
}

TEST_CASE("segments with a memory count places from the memory on: scores, which know distances alone, are the same",
          "[gate][paper-28]") {
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

TEST_CASE("long texts are computed over what heads keep alone, with the numbers and gradients of the mask",
          "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto T = shortest_packed + 40;
  const auto kept = mask_of({T, T - 30}, T).unsqueeze(-1);
  const auto weight = noise({2, T, D}, "loss") * kept;
  struct Case {
    int64_t groups, active, shared;
    std::optional<int64_t> window;
    std::string positions;
    std::vector<int64_t> heads;  // that stay; empty: all
  };
  const std::vector<Case> cases{{6, 2, 0, {}, "own", {}},           {6, 1, 1, {}, "global", {}},
                                {6, 1, 1, 5, "own", {0, 2, 3, 5}},  {3, 1, 0, {}, "own", {}},
                                {3, 1, 1, 5, "global", {}},         {3, 1, 0, {}, "global", {1, 2, 3, 4, 5}},
                                {6, 1, 0, {}, "own", {5, 0, 3, 2}}, {6, 3, 0, {}, "own", {}}};
  for (const auto& [groups, active, shared, window, positions, heads] : cases)
    for (const bool is_causal : {true, false})
      for (const bool padded : {true, false}) {
        INFO(groups << " groups, " << active << " active, " << shared << " shared, positions " << positions << ", "
                    << heads.size() << " heads left, " << (is_causal ? "causal" : "both ways")
                    << (padded ? ", padding" : ""));
        const auto attention =
            make_attention(with_sparse(
                               [&, active = active, shared = shared, window = window, positions = positions](auto& o) {
                                 o.active = active;
                                 o.shared = shared;
                                 o.window = window;
                                 o.positions = positions;
                               },
                               6, groups),
                           D);
        if (!heads.empty()) attention->keep(heads);
        const auto pass = [&](bool masked, std::map<std::string, int>& operators) {
          const auto x = noise({2, T, D}, "x").requires_grad_();
          Forward run;
          Visibility see;
          see.causal = is_causal;
          if (padded) see.key_mask_BS = kept.squeeze(-1);
          if (masked) see.allowed_BTS = torch::ones({T, T}, torch::kBool);  // a mask of nothing is a mask: not packed
          Tensor y;
          operators = operators_of([&] { y = attention->forward(call_of(x, run, see)); });
          std::vector<Tensor> all{x};
          for (const auto& item : attention->named_parameters()) all.push_back(item.value());
          auto found = torch::autograd::grad({(y * weight).sum()}, all, {}, {}, false, true);
          for (std::size_t i = 0; i < found.size(); ++i)
            if (!found[i].defined()) found[i] = torch::zeros_like(all[i]);
          found.push_back((y * kept).detach());
          return found;
        };
        std::map<std::string, int> with_mask, without;
        const auto expected = pass(true, with_mask), got = pass(false, without);
        for (std::size_t i = 0; i < got.size(); ++i)
          CHECK(difference(got[i], expected[i]) < 1e-12 * std::max(1.0, expected[i].abs().max().item<double>()));
        const bool half = groups - shared == 2;  // of two heads one keeps more than half, and is masked
        CHECK(with_mask.count("aten::index_copy") == 0);
        if (!half) CHECK(without.count("aten::index_copy") == 1);
      }
}

TEST_CASE("where each head keeps a part of a long text, projections and mix are made of this part",
          "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto T = shortest_packed + 40;
  const auto x = noise({2, T, D}, "x");
  for (const int64_t groups : {6, 3}) {
    const auto attention = make_attention(with_sparse([](auto& o) { o.active = 1; }, 6, groups), D);
    HeadPlan plan;
    Forward run;
    const auto call = call_of(x, run, causal());
    gate_of(*attention).plan(plan, call);
    const auto n = plan.held_BGS.sum(-1).max().item<int64_t>();
    REQUIRE(2 * n <= T);
    const auto operators = operators_of([&] { attention->forward(call); });
    CHECK(operators.count("aten::linear") == 0);  // no product with all tokens but the router's
    CHECK(operators.at("aten::matmul") == 2);
    CHECK(operators.at("aten::baddbmm") == 1);
    CHECK(operators.at("aten::bmm") >= 1);
  }
}

TEST_CASE("whatever stands beside native_sparse, long texts give what the mask gives, in one pass and from a cache",
          "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto add_gate = [](const std::string& type, bool first) {
    return [=](AttentionOptions& o) {
      o.gates.items.insert(first ? o.gates.items.begin() : o.gates.items.end(), Choice(gate_catalogue, type));
    };
  };
  const std::map<std::string, std::function<void(AttentionOptions&)>> beside{
      {"heads scaled", [](auto&) {}},
      {"a gate before it", add_gate("scalar", true)},
      {"a gate after it", add_gate("head_norm", false)},
      {"the mix low_rank", [](auto& o) { o.mix.choose("low_rank"); }},
      {"the mix grouped_average", [](auto& o) { o.mix.choose("grouped_average"); }},
      {"the mix em_capsules", [](auto& o) { o.mix.choose("em_capsules"); }},
      {"values of width 3", [](auto& o) { o.value_width = 3; }},
      {"an adapter", [](auto& o) { o.then.items.emplace_back(adapter_catalogue, "knocking"); }},
      {"keys that all heads share", [](auto& o) { o.project.choose("head_embeddings"); }},
      {"each head turns at its own rate", [](auto& o) { o.position.choose("adarope"); }},
      {"each head turns at its own rate, one keeps all",
       [](auto& o) {
         o.position.choose("adarope");
         o.gates.items.front().template as<NativeSparseOptions>().shared = 1;
       }},
      {"a bias of positions", [](auto& o) { o.position.choose("alibi"); }},
      {"other scores", [](auto& o) { o.weigh.score.choose("additive"); }}};
  for (const auto& [what, tweak] : beside)
    for (const int64_t T : {shortest_packed + 8, shortest_packed_scores + 8}) {
      INFO(what << ", " << T << " tokens");
      auto options = with_sparse([](auto& o) { o.active = 1; });
      tweak(options);
      const auto attention = make_attention(options, D);
      const auto weight = noise({2, T, D}, "loss");
      const auto pass = [&](bool masked) {
        const auto x = noise({2, T, D}, "x").requires_grad_();
        Forward run;
        run.scale[Stack::dec_self] = torch::tensor({{1.0, 0.5, 0.0, 1.0, 2.0, 1.0}});
        auto see = causal();
        if (masked) see.allowed_BTS = torch::ones({T, T}, torch::kBool);
        const auto y = attention->forward(call_of(x, run, see));
        std::vector<Tensor> all{x};
        for (const auto& item : attention->named_parameters()) all.push_back(item.value());
        auto found = torch::autograd::grad({(y * weight).sum()}, all, {}, {}, false, true);
        for (std::size_t i = 0; i < found.size(); ++i)
          if (!found[i].defined()) found[i] = torch::zeros_like(all[i]);
        found.push_back(y.detach());
        return found;
      };
      const auto expected = pass(true), got = pass(false);
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(difference(got[i], expected[i]) < 1e-12 * std::max(1.0, expected[i].abs().max().item<double>()));
      if (T > shortest_packed_scores) continue;
      const torch::NoGradGuard no_grad;
      const auto x = noise({2, T, D}, "x");
      Forward none;
      CHECK(difference(in_chunks(*attention, x, {1, T - 4, 1, 2}), attention->forward(call_of(x, none, causal()))) <
            1e-12);
    }
}

TEST_CASE("long texts are packed in bfloat16 products too, in training, to their rounding", "[gate][paper-28]") {
  const auto T = shortest_packed + 40;
  const auto x = noise({2, T, D}, "x"), weight = noise({2, T, D}, "loss");
  const auto attention = make_attention(with_sparse([](auto& o) { o.balance = "fp"; }), D);
  attention->train();
  const auto gradients = [&](bool masked, bool narrow) {
    Forward run;
    auto see = causal();
    if (masked) see.allowed_BTS = torch::ones({T, T}, torch::kBool);
    Tensor y;
    {
      const Autocast products(narrow ? std::optional(torch::kBFloat16) : std::nullopt, torch::kCPU);
      y = attention->forward(call_of(x, run, see));
    }
    CHECK(y.scalar_type() == (narrow ? torch::kBFloat16 : torch::kFloat32));
    auto loss = (y.to(torch::kFloat32) * weight).sum();
    for (const auto& aux : run.aux) loss = loss + aux.sum;
    auto found = torch::autograd::grad({loss}, attention->parameters(), {}, {}, false, true);
    found.push_back(y.detach().to(torch::kFloat32));
    return found;
  };
  const auto full = gradients(false, false), masked = gradients(true, false), packed = gradients(false, true),
             rounded = gradients(true, true);
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto size = full[i].abs().max().item<double>();
    CHECK(difference(full[i], masked[i]) < 1e-4 * size);
    CHECK(packed[i].scalar_type() == torch::kFloat32);
    CHECK(difference(packed[i], rounded[i]) < 0.05 * size);
  }
}

TEST_CASE("a cache has rows for the tokens that groups keep, and reading on from it gives what one pass gives",
          "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  constexpr int64_t B = 3, T = 90;
  const auto x = noise({B, T, D}, "x");
  for (const int64_t groups : {6, 3})
    for (const int64_t shared : {0, 1})
      for (const std::string positions : {"own", "global"})
        for (const bool removed : {false, true}) {
          INFO(groups << " groups, " << shared << " shared, positions " << positions
                      << (removed ? ", heads removed" : ""));
          const auto attention = make_attention(with_sparse(
                                                    [&](auto& o) {
                                                      o.active = 1;
                                                      o.shared = shared;
                                                      o.positions = positions;
                                                      if (shared) o.window = 7;
                                                    },
                                                    6, groups),
                                                D);
          if (removed) attention->keep({5, 0, 3, 2});
          const auto G = attention->shape().G();
          Forward whole;
          auto masked = causal();
          masked.allowed_BTS = torch::ones({T, T}, torch::kBool);
          const auto expected = attention->forward(call_of(x, whole, masked));
          HeadPlan plan;
          gate_of(*attention).plan(plan, call_of(x, whole, causal()));
          State state, other;
          int64_t read = 0;
          const auto go_on = [&](State& to, int64_t length, const std::string& how, const Tensor& text) {
            Forward run;
            auto call = call_of(text.narrow(1, read, length), run, causal());
            call.q_pos = call.k_pos = torch::arange(read, read + length);
            call.state = &to;
            LambdaTap tap([](At at, Site) { return at == At::weights; },
                          [](At, Site, Tensor weights) { return weights; });
            if (how == "tapped") run.taps = {&tap};
            if (how == "masked") call.see.allowed_BTS = torch::ones({length, read + length}, torch::kBool);
            return attention->forward(call);
          };
          for (const auto& [length, how] : std::vector<std::pair<int64_t, std::string>>{{1, ""},
                                                                                        {1, ""},
                                                                                        {40, ""},
                                                                                        {1, ""},
                                                                                        {5, "tapped"},
                                                                                        {1, "tapped"},
                                                                                        {20, "masked"},
                                                                                        {1, "masked"},
                                                                                        {10, ""},
                                                                                        {1, ""},
                                                                                        {1, ""},
                                                                                        {1, ""}}) {
            CHECK(difference(go_on(state, length, how, x), expected.narrow(1, read, length)) < 1e-12);
            read += length;
            CHECK(state.length() == read);
            // Rows for the most that one group, of those that do not keep all, has of a text.
            const auto kept_BG = plan.held_BGS.slice(1, shared).narrow(2, 0, read).sum(-1);
            REQUIRE(state.stored.size() == (shared ? 5 : 3));
            for (std::size_t i = 0; i < 2; ++i) {
              CHECK(state.stored[i].sizes() == at::IntArrayRef{B, G - shared, kept_BG.max().item<int64_t>(), K});
              CHECK(state.stored[i].storage().nbytes() / sizeof(double) ==
                    static_cast<std::size_t>(state.stored[i].numel()));
              if (shared) CHECK(state.stored[i + 2].sizes() == at::IntArrayRef{B, 1, read, K});
            }
            CHECK(torch::equal(state.stored.back().squeeze(-1), plan.held_BGS.narrow(2, 0, read)));
          }
          // Beams: texts change places and are read on; a state that was copied before stays as it was.
          const auto rows = torch::tensor({2, 0, 0}, torch::kLong);
          other = state;
          std::vector<Tensor> before;
          for (const auto& tensor : other.stored) before.push_back(tensor.clone());
          state.reorder(rows);
          const auto of_beams = x.index_select(0, rows);
          const auto expected_of_beams = expected.index_select(0, rows);
          for (auto* either : {&state, &other}) {
            const auto at = read;
            auto copy = *either;
            for (const int64_t length : {1, 2, 1}) {
              const bool beams = either == &state;
              CHECK(difference(go_on(*either, length, "", beams ? of_beams : x),
                               (beams ? expected_of_beams : expected).narrow(1, read, length)) < 1e-12);
              read += length;
            }
            read = at;
            CHECK(difference(go_on(copy, 1, "", either == &state ? of_beams : x),
                             (either == &state ? expected_of_beams : expected).narrow(1, read, 1)) < 1e-12);
          }
        }
}

TEST_CASE("a head that keeps no token of a text gives it nothing, in one pass and from a cache", "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto T = shortest_packed + 8;
  // The first number of a token says which heads it prefers: those of the first text pick the heads 0 and 1 alone.
  auto x = noise({2, T, D}, "x");
  x.select(-1, 0).copy_(torch::tensor({1.0, 0.0}).unsqueeze(-1).expand({2, T}));
  const auto attention = make_attention(with_sparse([](auto&) {}), D);
  auto router = attention->named_parameters()["gate0.weight"];
  router.select(1, 0).zero_();
  router.slice(0, 0, 2).select(1, 0).fill_(100);
  HeadPlan plan;
  Forward run;
  gate_of(*attention).plan(plan, call_of(x, run, causal()));
  REQUIRE(plan.held_BGS[0].slice(0, 2).sum().item<int64_t>() == 0);
  auto masked = causal();
  masked.allowed_BTS = torch::ones({T, T}, torch::kBool);
  const auto expected = attention->forward(call_of(x, run, masked));
  CHECK(difference(attention->forward(call_of(x, run, causal())), expected) < 1e-12);
  CHECK(difference(in_chunks(*attention, x, {1, 1, T - 5, 1, 1, 1}), expected) < 1e-12);
  auto both_ways = masked;
  both_ways.causal = false;
  CHECK(difference(attention->forward(call_of(x, run, {})), attention->forward(call_of(x, run, both_ways))) < 1e-12);
  const auto alone = x.narrow(0, 0, 1);  // the other heads have no row at all
  CHECK(difference(in_chunks(*attention, alone, std::vector<int64_t>(static_cast<std::size_t>(T), 1)),
                   expected.narrow(0, 0, 1)) < 1e-12);
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

TEST_CASE(
    "the cv loss is the squared variation of probabilities and of expected loads, which are 0 and near 0 at the start",
    "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, 200, D}, "x");
  const auto loss = [&](double importance, double load, bool zero) {
    const auto attention = make_attention(
        with_sparse([&](auto& o) { o.balance = "cv", o.weight = 1, o.importance = importance, o.load = load; }), D);
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

TEST_CASE(
    "the bias of loss_free moves by its rate against the load, once an optimiser step, and picks by it while weights "
    "stay",
    "[gate][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto attention =
      make_attention(with_sparse([](auto& o) { o.balance = "loss_free", o.rate = 0.5, o.active = 1; }), D);
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

TEST_CASE("native_sparse has 4 H D K + H D parameters, keeps T K pairs, and its pairs are T^2 K^2 / 2H + T K / 2",
          "[gate][paper-28][cost]") {
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
  CHECK(attention->flops(T, T, true) ==
        2 * T * width * H + 3 * 2 * T * width * A * K + 2 * equal * (K + K) + 2 * T * A * K * width);
  CHECK(attention->flops(T, T, false) - attention->flops(T, T, true) == 2 * (T * T * A * A / H - equal) * (K + K));
  // What is cached: at equal loads T K of H T keys and values, K numbers each.
  CHECK(attention->cache_numbers() == A * 2 * K);
  State state;
  auto call = call_of(x, run, causal());
  call.state = &state;
  attention->forward(call);
  CHECK(state.stored.back().sum().item<int64_t>() == T * A);
  const auto most = n_H.max().item<double>();
  CHECK(state.stored[0].numel() + state.stored[1].numel() == static_cast<int64_t>(most) * H * 2 * K);
  auto router = attention->named_parameters()["gate0.weight"];
  auto equal_x = torch::zeros({1, T, width});
  router.zero_();
  for (int64_t h = 0; h < H; ++h) router[h][h / A] = 1;  // tokens of H / A kinds, in turn
  for (int64_t t = 0; t < T; ++t) equal_x[0][t][t % (H / A)] = 1;
  State at_equal;
  auto equally = call_of(equal_x, run, causal());
  equally.state = &at_equal;
  attention->forward(equally);
  CHECK(at_equal.stored[0].numel() + at_equal.stored[1].numel() == T * attention->cache_numbers());
  // Shared heads keep all; where adapters change what is cached, all is cached.
  options.gates.items.back().as<NativeSparseOptions>().shared = 1;
  CHECK(make_attention(options, width)->cache_numbers() == (A + 1) * 2 * K);
  options.then.items.emplace_back(adapter_catalogue, "knocking");
  CHECK(make_attention(options, width)->cache_numbers() == H * 2 * K);
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
  CHECK_THAT(problems(with_sparse([](auto& o) { o.active = 3, o.shared = 1; }, 6, 3)),
             ContainsSubstring("gates[0].active: expected at most the number of key/value heads (3)"));
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
