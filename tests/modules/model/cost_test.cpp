// Costs against counts from shapes: the products that run, and the query-key pairs that masks leave, one by one.
#include "modules/model/cost.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <numeric>

#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/additive.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

/// 2 for each multiply-add of the matrix products that `f` runs, counted from the shapes in a recording of it. The
/// fused attention counts nothing.
int64_t products_of(torch::nn::Module& module, const std::function<Tensor()>& f) {
  for (auto& parameter : module.parameters()) parameter.requires_grad_(false);  // else no constants of a recording
  const auto traced = torch::jit::tracer::trace(
      {}, [&](torch::jit::Stack) { return torch::jit::Stack{f()}; }, [](const Tensor&) { return std::string(); });
  const auto shape = [](const torch::jit::Value* value) {
    return *value->type()->expect<c10::TensorType>()->sizes().concrete_sizes();
  };
  const auto numbers = [](const std::vector<int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), int64_t{1}, std::multiplies<>());
  };
  int64_t count = 0;
  for (const auto* node : traced.first->graph->nodes()) {
    const std::string kind = node->kind().toQualString();
    if (kind != "aten::linear" && kind != "aten::matmul" && kind != "aten::mm") continue;
    count += 2 * numbers(shape(node->output())) * shape(node->input(0)).back();
  }
  return count;
}

/// Visible pairs of all heads, looked at one by one.
int64_t pairs_by_hand(int64_t T, int64_t S, bool causal, const std::vector<int64_t>& windows) {
  int64_t pairs = 0;
  for (auto window : windows)
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < S; ++j) {
        const auto back = S - T + i - j;
        if (causal && back < 0) continue;
        if (window > 0 && std::abs(back) >= window) continue;
        ++pairs;
      }
  return pairs;
}

struct Case {
  std::string name;
  std::function<void(AttentionOptions&)> change = [](auto&) {};
  std::vector<int64_t> windows = {0, 0, 0, 0};
  std::vector<int64_t> kept = {0, 1, 2, 3};
};

std::vector<Case> cases() {
  std::vector<Case> all{{"standard"}};
  const auto grouped = [](AttentionOptions& a) {
    a.project.choose("grouped");
    a.project.as<GroupedProjectOptions>().groups = 2;
  };
  all.push_back({"grouped, values of width 5", [=](auto& a) { grouped(a), a.value_width = 5; }});
  all.push_back({"pruned", [](auto&) {}, {0, 0}, {1, 3}});
  all.push_back({"grouped, pruned to one group", grouped, {0, 0}, {0, 1}});
  all.push_back(
      {"mixed heads", [=](auto& a) { grouped(a), a.then.items.emplace_back(adapter_catalogue, "mix_heads"); }});
  all.push_back({"windows",
                 [](auto& a) {
                   a.gates.items.emplace_back(gate_catalogue, "windows");
                   a.gates.items.back().template as<WindowsOptions>().windows = {2, 0, 5, 2};
                 },
                 {2, 0, 5, 2}});
  return all;
}

AttentionOptions options_of(const Case& c) {
  auto options = small_attention();
  c.change(options);
  return options;
}

}  // namespace

TEST_CASE("pairs that a head sees are those that its mask leaves") {
  for (const int64_t S : {1, 4, 9})
    for (const int64_t T : {int64_t{1}, S})
      for (const int64_t window : {0, 1, 3, 20}) {
        CHECK(seen_pairs(T, S, true, window) == pairs_by_hand(T, S, true, {window}));
        if (T == S) CHECK(seen_pairs(T, S, false, window) == pairs_by_hand(T, S, false, {window}));
      }
  CHECK(seen_pairs(3, 8, false, 0) == 24);
  CHECK(seen_pairs(6, 6, true, 2) == visible_pairs(2, 6));
}

TEST_CASE("an attention costs its products and its visible pairs") {
  torch::NoGradGuard no_grad;
  constexpr int64_t T = 7;
  for (const auto& c : cases()) {
    INFO(c.name);
    auto attention = make_attention(options_of(c), small_width);
    if (c.kept.size() < 4) attention->keep(c.kept);
    const auto& shape = attention->shape();
    for (const bool is_causal : {true, false}) {
      Visibility see;
      see.causal = is_causal;
      Forward run;
      const auto x = noise({1, T, small_width}, "x");
      const auto around = products_of(*attention, [&] { return attention->forward(call_of(x, run, see)); });
      const auto inside = 2 * pairs_by_hand(T, T, is_causal, c.windows) * (shape.head_width + shape.value_width);
      CHECK(attention->flops(T, T, is_causal) == around + inside);
    }
    attention->keep({});
    CHECK(attention->flops(T, T, true) == 0);
    CHECK(attention->cache_numbers() == 0);
  }
}

TEST_CASE("a cross-attention costs T queries over S keys of the memory's width") {
  torch::NoGradGuard no_grad;
  constexpr int64_t T = 3, S = 10;
  for (const auto& c : cases()) {
    if (c.name == "windows") continue;
    INFO(c.name);
    auto attention = make_attention(options_of(c), small_width, true, std::nullopt, 6);
    if (c.kept.size() < 4) attention->keep(c.kept);
    Forward run;
    const auto x = noise({1, T, small_width}, "x"), memory = noise({1, S, 6}, "memory");
    const auto around = products_of(*attention, [&] { return attention->forward(call_of(x, run, {}, memory)); });
    const auto& shape = attention->shape();
    CHECK(attention->flops(T, S, false) == around + 2 * T * S * shape.H() * (shape.head_width + shape.value_width));
  }
}

TEST_CASE("additive scores cost a hidden layer for queries, keys and pairs") {
  torch::NoGradGuard no_grad;
  auto options = small_attention();
  options.weigh.score.choose("additive");
  options.weigh.score.as<AdditiveOptions>().width = 5;
  auto attention = make_attention(options, small_width);
  Forward run;
  // Without masks all products run, and are seen.
  const auto x = noise({1, 6, small_width}, "x");
  const auto all = products_of(*attention, [&] { return attention->forward(call_of(x, run)); });
  CHECK(attention->flops(6, 6, false) == all);
}

TEST_CASE("routed experts cost their router and the k heads of each token, however many there are") {
  torch::NoGradGuard no_grad;
  for (const int64_t heads : {4, 8}) {
    AttentionOptions options;
    options.heads = heads;
    options.head_width = 2;
    options.project.choose("experts");
    options.mix.choose("experts");
    options.gates.items.emplace_back(gate_catalogue, "route_experts");
    options.gates.items.back().as<RouteExpertsOptions>().k = 3;
    auto attention = make_attention(options, small_width);
    Forward run;
    constexpr int64_t T = 9;
    const auto x = noise({1, T, small_width}, "x");
    const auto around = products_of(*attention, [&] { return attention->forward(call_of(x, run, causal())); });
    CHECK(attention->flops(T, T, true) == around + 2 * 3 * (T * (T + 1) / 2) * 4);
  }
}

TEST_CASE("a window makes the cost of attention grow with the length, not with its square") {
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "windows");
  options.gates.items.back().as<WindowsOptions>().windows = {16};
  const auto windowed = make_attention(options, small_width), full = make_attention(small_attention(), small_width);
  const auto of_pairs = [](const Attention& attention, int64_t T) {
    return attention.flops(T, T, true) - 2 * T * (3 * small_width * small_width + small_width * small_width);
  };
  for (const int64_t T : {1024, 2048}) {
    CHECK(of_pairs(*windowed, T) == 4 * small_width * (16 * T - 120));  // r T D, less the start
    CHECK(of_pairs(*full, T) == 4 * small_width * T * (T + 1) / 2);
  }
}

TEST_CASE("whole models cost what their products and pairs come to, in every part") {
  torch::NoGradGuard no_grad;
  constexpr int64_t S = 5, T = 8;
  auto options = small_encoder_decoder();
  options.embedding.tie = "none";
  options.encoder.d_model = 12;
  options.encoder.feed_forward.choose("swiglu");
  options.decoder.cross_attention.value_width = 3;
  const auto batch = [&] {
    return Batch{random_ids({1, S}, small_vocabulary, "s"), {}, random_ids({1, T}, small_vocabulary, "t"), {}};
  }();
  const auto check = [&](const Choice& choice, const std::function<int64_t(const Attention&, Site)>& pairs) {
    INFO(choice.type());
    auto model = make_model(choice);
    for (const bool pruned : {false, true}) {
      if (pruned) {
        auto kept = model->heads();
        for (auto& [stack, layers] : kept) layers[0] = {1, 3}, layers[1] = {};
        model->keep(kept);
      }
      auto expected = products_of(*model, [&] { return logits_of(*model, batch); });
      int64_t numbers = 0;
      for (const auto& [site, mixer] : model->mixers()) {
        const auto& attention = dynamic_cast<const Attention&>(*mixer);
        expected += 2 * pairs(attention, site) * (attention.shape().head_width + attention.shape().value_width);
      }
      for (const auto& parameter : model->parameters()) numbers += parameter.numel();
      const auto of_model = cost(*model, S, T);
      CHECK(of_model.flops == expected);
      CHECK(of_model.flops_per_token == Approx(static_cast<double>(expected) / T));
      CHECK(of_model.parameters == numbers);
      const int64_t layers = pruned ? 1 : 2, heads = pruned ? 2 : 4;
      CHECK(of_model.cache_per_target == (choice.type() == "encoder_only" ? 0 : layers * heads * 4));
      CHECK(of_model.cache_per_source == (choice.type() == "encoder_decoder" ? layers * heads * 5 : 0));
    }
  };
  check(model_choice("encoder_decoder", options), [&](const Attention& a, Site site) {
    const auto H = a.shape().H();
    return site.stack == Stack::enc_self ? H * S * S : site.stack == Stack::dec_self ? H * T * (T + 1) / 2 : H * T * S;
  });
  check(model_choice("decoder_only", small_decoder_only()),
        [&](const Attention& a, Site) { return a.shape().H() * T * (T + 1) / 2; });
  check(model_choice("encoder_only", small_encoder_only()),
        [&](const Attention& a, Site) { return a.shape().H() * T * T; });
  const auto model = make_model(model_choice("decoder_only", small_decoder_only()));
  CHECK_THROWS_AS(cost(*model, 1, 0), UsageError);
}

}  // namespace headlab
