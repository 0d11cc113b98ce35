// 2406.06567: groups of keys and groups of values, each for itself.
#include "modules/attention/project/decoupled.h"

#include "modules/attention/attention.h"
#include "modules/attention/project/knocking.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 6, S = 5, D = 16, H = 4, K = 4;

AttentionOptions decoupled(std::vector<int64_t> k_map, std::vector<int64_t> v_map,
                           const std::string& position = "none") {
  AttentionOptions options;
  options.heads = H;
  options.project.choose("decoupled");
  auto& project = options.project.as<DecoupledProjectOptions>();
  project.k_map = std::move(k_map);
  project.v_map = std::move(v_map);
  options.position.choose(position);
  return options;
}

AttentionOptions grouped(int64_t groups, const std::string& position) {
  AttentionOptions options;
  options.heads = H;
  options.project.choose("grouped");
  options.project.as<GroupedProjectOptions>().groups = groups;
  options.position.choose(position);
  return options;
}

Tensor forward(Attention& attention, const Tensor& x, const Tensor& memory = {}, State* state = nullptr) {
  torch::NoGradGuard no_grad;
  Forward run;
  auto call = call_of(x, run, memory.defined() ? Visibility() : causal(), memory);
  call.state = state;
  return attention.forward(call);
}

/// The rows of a grouped projection, and its mix, as those of a decoupled one with as many groups of both.
void share(const Attention& from, Attention& to) {
  torch::NoGradGuard no_grad;
  const auto& shape = from.shape();
  const auto theirs = from.named_parameters();
  auto mine = to.named_parameters();
  const auto q = shape.H() * K, kv = shape.G() * K;
  for (const std::string what : {"weight", "bias"}) {
    const auto all = shape.cross ? torch::cat({theirs["project.query_" + what], theirs["project.memory_" + what]})
                                 : theirs["project." + what];
    mine["project.query_" + what].copy_(all.narrow(0, 0, q));
    mine["project.key_" + what].copy_(all.narrow(0, q, kv));
    mine["project.value_" + what].copy_(all.narrow(0, q + kv, kv));
    mine["mix." + what].copy_(theirs["mix." + what]);
  }
}

std::vector<std::string> problem_fields(const AttentionOptions& options) {
  Problems problems;
  attention_rules(options, D, false, "attention", problems);
  options.project.options().rules(problems);
  std::vector<std::string> fields;
  for (const auto& problem : problems.found) fields.push_back(problem.field);
  return fields;
}

}  // namespace

TEST_CASE("equal maps in order are grouped queries, a group for each head the standard attention, cache included") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D}, "memory");
  for (const bool cross : {false, true})
    for (const int64_t groups : {1, 2, 4}) {
      const std::string position = cross ? "none" : "rope";
      std::vector<int64_t> map;
      for (int64_t h = 0; h < H; ++h) map.push_back(h * groups / H);
      auto options = decoupled(map, map, position);
      auto by_count = decoupled({}, {}, position);
      by_count.project.as<DecoupledProjectOptions>().k_groups =
          by_count.project.as<DecoupledProjectOptions>().v_groups = groups;
      auto reference = make_attention(grouped(groups, position), D, cross);
      const auto given = cross ? memory : Tensor();
      State expected;
      const auto y = forward(*reference, x, given, &expected);
      for (const auto& one : {options, by_count}) {
        auto attention = make_attention(one, D, cross);
        share(*reference, *attention);
        State state;
        CHECK(difference(forward(*attention, x, given, &state), y) < 1e-13);
        for (std::size_t i = 0; i < 2; ++i)
          CHECK(difference(state.stored[i], expected.stored[i]) < 1e-13);  // keys as positions left them
        CHECK(attention->cache_numbers() == reference->cache_numbers());
        CHECK(attention->flops(T, S, false) == reference->flops(T, S, false));
        CHECK((attention->shape().group_of == reference->shape().group_of));
      }
    }
  const auto none = decoupled({}, {});
  auto standard = make_attention(grouped(H, "none"), D), attention = make_attention(none, D);
  share(*standard, *attention);
  CHECK(difference(forward(*attention, x), forward(*standard, x)) < 1e-13);
}

TEST_CASE("decoupled heads equal loops over double numbers, each reading its own keys and values") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), memory = noise({B, S, D}, "memory");
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> maps{{{0, 0, 1, 1}, {0, 1, 1, 1}},
                                                                                {{1, 0, 0, 1}, {0, 0, 2, 1}},
                                                                                {{0, 0, 0, 0}, {3, 1, 2, 0}},
                                                                                {{2, 0, 1, 2}, {0, 0, 0, 0}}};
  for (const bool cross : {false, true})
    for (const auto& [k_map, v_map] : maps) {
      auto attention = make_attention(decoupled(k_map, v_map, cross ? "none" : "rope"), D, cross);
      const auto p = attention->named_parameters();
      const auto& from = cross ? memory : x;
      auto q = reference::project(x, p["project.query_weight"], p["project.query_bias"], K);
      auto k = reference::project(from, p["project.key_weight"], p["project.key_bias"], K);
      const auto v = reference::project(from, p["project.value_weight"], p["project.value_bias"], K);
      if (!cross) {
        q = reference::rotate(q, 10000);
        k = reference::rotate(k, 10000);
      }
      const auto scores = reference::dot_products(q, k, k_map, 0.5);
      const auto z = reference::weigh_by(scores, T, v, v_map,
                                         [&](int64_t, int64_t, int64_t t, int64_t s) { return cross || s <= t; });
      const auto y = reference::concatenate(z, p["mix.weight"], p["mix.bias"]);
      CHECK(difference(forward(*attention, x, cross ? memory : Tensor()), y) < 1e-12);
    }
}

TEST_CASE("a cache of decoupled heads holds T K (n_k + n_v) numbers a layer") {
  int64_t held = 0, formula = 0;
  for (const auto& [k_map, v_map, groups] :
       std::vector<std::tuple<std::vector<int64_t>, std::vector<int64_t>, int64_t>>{
           {{0, 0, 1, 1}, {0, 1, 1, 1}, 4}, {{0, 0, 0, 0}, {0, 1, 2, 1}, 4}, {{0, 1, 2, 3}, {0, 0, 0, 0}, 5}}) {
    auto attention = make_attention(decoupled(k_map, v_map, "rope"), D);
    State state;
    forward(*attention, noise({1, T, D}, "x"), {}, &state);
    for (const auto& stored : state.stored) held += stored.numel();
    formula += T * K * groups;
    CHECK(attention->cache_numbers() == K * groups);
  }
  CHECK(held == formula);
  auto wide = decoupled({0, 0, 1, 1}, {0, 1, 2, 2});
  wide.value_width = 5;
  CHECK(make_attention(wide, D)->cache_numbers() == 2 * K + 3 * 5);
}

TEST_CASE("tokens read one by one through the narrow cache give what all at once give") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(decoupled({0, 0, 1, 1}, {0, 1, 1, 0}, "rope"), D);
  const auto whole = forward(*attention, x);
  State state;
  torch::NoGradGuard no_grad;
  for (int64_t t = 0; t < T; ++t) {
    Forward run;
    auto call = call_of(x.narrow(1, t, 1), run, causal());
    call.q_pos = call.k_pos = torch::arange(t, t + 1);
    call.state = &state;
    CHECK(difference(attention->forward(call), whole.narrow(1, t, 1)) < 1e-12);
  }
}

TEST_CASE("keys and values go when no head reads them any more") {
  auto attention = make_attention(decoupled({0, 0, 1, 2}, {0, 1, 1, 1}), D);
  const auto p = [&](const std::string& name) { return attention->named_parameters()["project." + name].clone(); };
  const auto keys = p("key_weight"), values = p("value_bias");
  attention->keep({1, 2, 3});  // values 0 have lost their only head
  CHECK(attention->cache_numbers() == K * (3 + 1));
  CHECK(torch::equal(p("key_weight"), keys));
  CHECK(torch::equal(p("value_bias"), values.narrow(0, K, K)));
  attention->keep({1, 3});
  CHECK(torch::equal(p("key_weight"), torch::cat({keys.narrow(0, 0, K), keys.narrow(0, 2 * K, K)})));
  CHECK(attention->cache_numbers() == K * (2 + 1));
  const auto again = make_attention(attention->options(), D, false, std::vector<int64_t>{1, 3});
  for (const auto& item : attention->named_parameters())
    CHECK(again->named_parameters()[item.key()].sizes() == item.value().sizes());
  attention->keep({});
  CHECK(attention->cache_numbers() == 0);
}

TEST_CASE("projections of decoupled heads cost 2 T D H K + 2 S D K (n_k + n_v), with as many parameters") {
  auto options = decoupled({0, 0, 1, 1}, {0, 1, 2, 2});
  options.project.as<DecoupledProjectOptions>().bias = false;
  const auto attention = make_attention(options, D);
  int64_t parameters = 0;
  for (const auto& item : attention->named_parameters())
    if (item.key().rfind("project.", 0) == 0) parameters += item.value().numel();
  CHECK(parameters == D * K * (H + 2 + 3));
  auto plain = grouped(H, "none");
  plain.project.as<GroupedProjectOptions>().bias = false;
  CHECK(make_attention(plain, D)->flops(T, S, false) - attention->flops(T, S, false) == 2 * S * D * K * (2 * H - 5));
}

TEST_CASE("linear maps are multiplied into decoupled projections") {
  DefaultDtype guard(torch::kFloat64);
  auto options = decoupled({0, 0, 1, 1}, {0, 1, 1, 0}, "rope");
  Choice knocking(adapter_catalogue, "knocking");
  knocking.as<KnockingOptions>().on = {"q", "k", "v"};
  options.then.items = {knocking};
  auto attention = make_attention(options, D);
  const auto x = noise({B, T, D}, "x");
  const auto before = forward(*attention, x);
  attention->absorb();
  CHECK(attention->options().then.items.empty());
  CHECK(difference(forward(*attention, x), before) < 1e-12);
}

TEST_CASE("maps that can't be are refused by name") {
  CHECK(problem_fields(decoupled({0, 0, 1, 1}, {0, 1, 1, 1})).empty());
  CHECK((problem_fields(decoupled({0, 1, 1}, {0, 1, 1, 1})) == std::vector<std::string>{"attention.project.k_map"}));
  CHECK((problem_fields(decoupled({0, 0, 1, 1}, {0, 2, 2, 2})) == std::vector<std::string>{"v_map"}));
  auto both = decoupled({0, 0, 1, 1}, {});
  both.project.as<DecoupledProjectOptions>().k_groups = 2;
  both.project.as<DecoupledProjectOptions>().v_groups = 5;
  CHECK((problem_fields(both) == std::vector<std::string>{"attention.project.v_groups", "k_groups"}));
  CHECK_THROWS_AS(Attention(decoupled({0, 1, 1}, {}), D, D, false), ShapeError);
}

}  // namespace headlab
