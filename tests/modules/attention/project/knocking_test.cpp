// 2510.23052: maps that all heads share.
#include "modules/attention/project/knocking.h"

#include "modules/attention/attention.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, S = 6, D = 16, H = 4, G = 2, K = 4;

Choice knocking(const std::string& kind, std::vector<std::string> on = {"v"}, const std::string& init = "identity") {
  Choice choice(adapter_catalogue, "knocking");
  auto& options = choice.as<KnockingOptions>();
  options.kind = kind;
  options.on = std::move(on);
  options.init = init;
  return choice;
}

AttentionOptions grouped_with(std::vector<Choice> then, const std::string& position = "none") {
  AttentionOptions options;
  options.heads = H;
  options.project.choose("grouped");
  options.project.as<GroupedProjectOptions>().groups = G;
  options.position.choose(position);
  options.then.items = std::move(then);
  return options;
}

std::vector<std::vector<Choice>> of_each_kind() {
  return {{knocking("linear", {"q"})},
          {knocking("linear", {"k"})},
          {knocking("linear", {"q", "k", "v"})},
          {knocking("gate")},
          {knocking("linear", {"q", "k"}), knocking("mlp")}};
}

Tensor forward(Attention& attention, const Tensor& x, const Tensor& memory = {}) {
  torch::NoGradGuard no_grad;
  Forward run;
  return attention.forward(call_of(x, run, memory.defined() ? Visibility() : causal(), memory));
}

/// Copies what both have of one name.
void share(const Attention& from, Attention& to) {
  torch::NoGradGuard no_grad;
  const auto mine = from.named_parameters();
  for (auto& item : to.named_parameters())
    if (mine.contains(item.key())) item.value().copy_(mine[item.key()]);
}

/// y_i = sum_j x_j M_ji, of each row.
Tensor times(const Tensor& x, const Tensor& map) {
  const auto rows = reference::in_double(x).reshape({-1, map.size(0)}), M = reference::in_double(map);
  auto y = torch::zeros({rows.size(0), M.size(1)}, torch::kFloat64);
  for (int64_t n = 0; n < y.size(0); ++n)
    for (int64_t i = 0; i < y.size(1); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < M.size(0); ++j) sum += rows[n][j].item<double>() * M[j][i].item<double>();
      y[n][i] = sum;
    }
  return y.view_as(x);
}

Tensor gates_of(const Tensor& x, const Tensor& map) {
  auto gates = times(x, map);
  auto* value = gates.data_ptr<double>();
  for (int64_t i = 0; i < gates.numel(); ++i) value[i] = 2 / (1 + std::exp(-value[i]));
  return gates;
}

}  // namespace

TEST_CASE("knocking heads start as the attention without them, whatever the kind") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D}, "memory");
  for (const bool cross : {false, true})
    for (const auto& then : of_each_kind()) {
      const std::string position = cross ? "none" : "rope";
      auto with = make_attention(grouped_with(then, position), D, cross),
           without = make_attention(grouped_with({}, position), D, cross);
      initialise(*with, 1);
      share(*with, *without);
      const auto given = cross ? memory : Tensor();
      CHECK(difference(forward(*with, x, given), forward(*without, x, given)) < 1e-14);
      fill(*with, 0.5);
      share(*with, *without);
      CHECK(difference(forward(*with, x, given), forward(*without, x, given)) > 1e-2);
    }
}

TEST_CASE("a model with knocking heads starts with the logits of the model without") {
  for (const auto& then : of_each_kind()) {
    auto attention = small_attention();
    const auto plain = make_model(model_choice("decoder_only", small_decoder_only(attention)));
    attention.then.items = then;
    const auto model = make_model(model_choice("decoder_only", small_decoder_only(attention)));
    initialise(*plain, 4);
    initialise(*model, 4);  // draws go by names: adapters change no other parameter
    CHECK(difference(logits_of(*model, small_batch()), logits_of(*plain, small_batch())) < 1e-6);
  }
}

TEST_CASE("knocking heads equal loops over double numbers") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  for (const auto& then : of_each_kind()) {
    auto attention = make_attention(grouped_with(then, "rope"), D);
    fill(*attention, 0.5);
    const auto p = attention->named_parameters();
    const auto rows = [&](const char* name, int64_t first, int64_t count) {
      return p[name].narrow(0, first * K, count * K);
    };
    const auto made = [&](int64_t first, int64_t count) {
      return reference::project(x, rows("project.weight", first, count), rows("project.bias", first, count), K);
    };
    auto q = made(0, H), k = made(H, G), v = made(H + G, G);
    for (std::size_t i = 0; i < then.size(); ++i) {
      const auto map = [&](const char* name) { return p["then" + std::to_string(i) + "." + name]; };
      const auto& options = then[i].as<KnockingOptions>();
      if (options.kind == "gate") v = gates_of(v, map("gate_map")) * v;
      if (options.kind == "mlp") v = times(gates_of(v, map("gate_map")) * times(v, map("up_map")), map("down_map"));
      if (options.kind != "linear") continue;
      for (const auto& on : options.on) {
        if (on == "q") q = times(q, map("query_map"));
        if (on == "k") k = times(k, map("key_map"));
        if (on == "v") v = times(v, map("value_map"));
      }
    }
    const std::vector<int64_t> group_of{0, 0, 1, 1};
    const auto scores =
        reference::dot_products(reference::rotate(q, 10000), reference::rotate(k, 10000), group_of, 0.5);
    const auto z =
        reference::weigh_by(scores, T, v, group_of, [](int64_t, int64_t, int64_t t, int64_t s) { return s <= t; });
    CHECK(difference(forward(*attention, x), reference::concatenate(z, p["mix.weight"], p["mix.bias"])) < 1e-12);
  }
}

TEST_CASE("knocking heads have K^2 parameters for each of q, k and v, an mlp 3 K^2, whatever the number of heads") {
  const auto extra = [](std::vector<Choice> then) {
    int64_t count = 0;
    for (const auto& item : make_attention(grouped_with(std::move(then)), D)->named_parameters())
      if (item.key().rfind("then", 0) == 0) count += item.value().numel();
    return count;
  };
  CHECK(extra({knocking("linear", {"q", "k", "v"})}) == 3 * K * K);
  CHECK(extra({knocking("linear", {"k"})}) == K * K);
  CHECK(extra({knocking("mlp")}) == 3 * K * K);
  CHECK(extra({knocking("gate")}) == K * K);
}

TEST_CASE("three knocking maps cost 6 T D^2 / H, 1.17 % of an attention and 0.55 % of a layer") {
  constexpr int64_t length = 2048, width = 1024, heads = 32;
  AttentionOptions options;
  options.heads = heads;
  const auto flops = [&] { return Attention(options, width, width, false).flops(length, length, false); };
  const auto plain = flops();
  options.then.items = {knocking("linear", {"q", "k", "v"})};
  const auto more = flops() - plain;
  CHECK(more == 6 * length * width * width / heads);
  CHECK(static_cast<double>(more) / static_cast<double>(plain) == Approx(0.0117).margin(5e-5));
  const auto feed_forward = 18 * length * width * width;  // three matrices of width 3 D
  CHECK(static_cast<double>(more) / static_cast<double>(plain + feed_forward) == Approx(0.0055).margin(5e-5));
}

TEST_CASE("linear maps multiplied into the projection leave the plain attention, with the same outputs") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D}, "memory");
  for (const bool cross : {false, true})
    for (const bool bias : {false, true})
      for (const bool pruned : {false, true}) {
        auto options =
            grouped_with({knocking("linear", {"q", "k"}), knocking("linear", {"v", "k"})}, cross ? "none" : "rope");
        options.value_width = 5;
        options.project.as<GroupedProjectOptions>().bias = bias;
        auto attention = make_attention(options, D, cross);
        fill(*attention, 0.5);
        options.then.items.clear();
        auto plain = make_attention(options, D, cross);
        if (pruned) {
          attention->keep({3, 1});
          plain->keep({3, 1});
        }
        const auto given = cross ? memory : Tensor();
        const auto before = forward(*attention, x, given);
        attention->absorb();
        CHECK(difference(forward(*attention, x, given), before) < 1e-12);
        CHECK(attention->named_parameters().keys() == plain->named_parameters().keys());
        CHECK(attention->flops(T, T, true) == plain->flops(T, T, true));
        share(*attention, *plain);
        CHECK(torch::equal(forward(*plain, x, given), forward(*attention, x, given)));
        const auto copy = std::dynamic_pointer_cast<Attention>(attention->clone());
        CHECK(torch::equal(forward(*copy, x, given), forward(*attention, x, given)));
      }
}

TEST_CASE("maps are absorbed up to the first adapter that is more than a matrix") {
  const auto left = [](std::vector<Choice> then) {
    auto attention = make_attention(grouped_with(std::move(then)), D);
    const auto x = noise({B, T, D}, "x");
    const auto before = forward(*attention, x);
    attention->absorb();
    CHECK(difference(forward(*attention, x), before) < 1e-5);
    std::string names;
    for (const auto& item : attention->options().then.items) names += item.type() + " ";
    return names;
  };
  CHECK(left({knocking("mlp")}) == "knocking ");
  CHECK(left({knocking("gate")}) == "knocking ");
  CHECK(left({knocking("linear"), Choice(adapter_catalogue, "mix_heads")}) == "mix_heads ");
  CHECK(left({knocking("linear"), knocking("gate"), knocking("linear")}) == "knocking knocking ");
}

TEST_CASE("a cache keeps mapped keys and values, as many numbers as without maps") {
  torch::NoGradGuard no_grad;
  auto attention = make_attention(grouped_with({knocking("linear", {"k"}), knocking("mlp")}), D);
  CHECK(attention->cache_numbers() == 2 * G * K);
  State state;
  Forward run;
  auto call = call_of(noise({B, T, D}, "x"), run, causal());
  call.state = &state;
  std::vector<Tensor> seen;
  LambdaTap tap([](At at, Site) { return at == At::k || at == At::v; },
                [&](At, Site, Tensor value) {
                  seen.push_back(value);
                  return value;
                });
  run.taps = {&tap};
  attention->forward(call);
  REQUIRE(state.stored.size() == 2);
  CHECK(torch::equal(state.stored[0], seen[0]));
  CHECK(torch::equal(state.stored[1], seen[1]));
}

TEST_CASE("random maps are Xavier-uniform, or normal with a deviation") {
  auto options = grouped_with({knocking("linear", {"q", "k", "v"}, "random")});
  options.head_width = 100;
  const auto map = [&] {
    auto attention = std::make_shared<Attention>(options, D, D, false);
    initialise(*attention, 1);
    return attention->named_parameters()["then0.key_map"];
  };
  const auto uniform = map();
  CHECK(uniform.abs().max().item<double>() == Approx(std::sqrt(6.0 / 200)).epsilon(0.01));
  CHECK(uniform.std().item<double>() == Approx(std::sqrt(2.0 / 200)).epsilon(0.03));
  options.then.items[0].as<KnockingOptions>().deviation = 0.02;
  CHECK(map().std().item<double>() == Approx(0.02).epsilon(0.03));
}

TEST_CASE("what an mlp can't be put on is said, and what stands in the wrong order") {
  const auto problems_of = [](std::vector<Choice> then) {
    Problems problems;
    attention_rules(grouped_with(std::move(then)), D, false, "attention", problems);
    return problems.found;
  };
  const auto own = [](const Choice& choice) {
    Problems problems;
    choice.options().rules(problems);
    return problems.found;
  };
  CHECK(own(knocking("linear", {"q", "k", "v"})).empty());
  CHECK(own(knocking("mlp")).empty());
  for (const auto* kind : {"mlp", "gate"}) {
    const auto found = own(knocking(kind, {"k", "v"}));
    REQUIRE(found.size() == 1);
    CHECK(found[0].field == "on");
  }
  CHECK(own(knocking("linear", {})).size() == 1);
  CHECK(problems_of({knocking("linear"), Choice(adapter_catalogue, "mix_heads")}).empty());
  const auto found = problems_of({Choice(adapter_catalogue, "mix_heads"), knocking("linear")});
  REQUIRE(found.size() == 1);
  CHECK(found[0].field == "attention.then[1]");
}

}  // namespace headlab
