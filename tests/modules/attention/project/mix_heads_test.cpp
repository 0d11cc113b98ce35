// 2601.19611: keys and values mixed across heads.
#include "modules/attention/project/mix_heads.h"

#include "modules/attention/attention.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, D = 16, H = 8;

AttentionOptions mixed(int64_t components, const std::string& position = "none") {
  AttentionOptions options;
  options.project.choose("grouped");
  options.project.as<GroupedProjectOptions>().groups = components;
  options.then.items.emplace_back(adapter_catalogue, "mix_heads");
  options.position.choose(position);
  return options;
}

AttentionOptions unmixed(int64_t groups, const std::string& position = "none") {
  auto options = mixed(groups, position);
  options.then.items.clear();
  return options;
}

Tensor forward(Attention& attention, const Tensor& x) {
  torch::NoGradGuard no_grad;
  Forward run;
  return attention.forward(call_of(x, run, causal()));
}

/// Copies what both have of one name and shape.
void share(const Attention& from, Attention& to) {
  torch::NoGradGuard no_grad;
  const auto mine = from.named_parameters();
  for (auto& item : to.named_parameters())
    if (mine.contains(item.key()) && mine[item.key()].sizes() == item.value().sizes())
      item.value().copy_(mine[item.key()]);
}

}  // namespace

TEST_CASE("mixing by the identity is no mixing") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  for (const std::string position : {"none", "rope"})
    for (const int64_t components : {1, 2, 8}) {  // fewer components: each head starts with its group's
      auto with = make_attention(mixed(components, position), D),
           without = make_attention(unmixed(components, position), D);
      initialise(*with, 1);
      share(*with, *without);
      CHECK(difference(forward(*with, x), forward(*without, x)) < 1e-14);
    }
}

TEST_CASE("mixing starts at the identity whatever the seed, with 2 entries for each component and head") {
  auto attention = make_attention(mixed(H), D);
  initialise(*attention, 5);
  const auto parameters = attention->named_parameters();
  CHECK(torch::equal(parameters["then0.key_mix"], torch::eye(H)));
  CHECK(torch::equal(parameters["then0.value_mix"], torch::eye(H)));
  const auto few = make_attention(mixed(2), D)->named_parameters();
  CHECK(few["then0.key_mix"].numel() + few["then0.value_mix"].numel() == 2 * 2 * H);
}

TEST_CASE("mixing heads commutes with RoPE") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = 4;
  shape->original_heads = H;
  for (int64_t h = 0; h < H; ++h) shape->heads.push_back(h);
  set_groups(*shape, 4);
  const auto held = std::make_shared<MixHeads>(MixHeadsOptions(), shape);
  auto& mix = *held;
  fill(mix, 1.0);
  Rope rope({}, shape);
  const auto k = noise({B, 4, T, 4}, "k"), v = noise({B, 4, T, 4}, "v");
  const auto positions = torch::arange(100, 100 + T);
  const auto after = rope.rotate(mix.expand({k, v})[0], positions),
             before = mix.expand({rope.rotate(k, positions), v})[0];
  CHECK(difference(after, before) < 1e-14);
  CHECK(difference(before, mix.expand({k, v})[0]) > 1e-2);
}

TEST_CASE("one component for each group of heads gives grouped queries") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(mixed(H), D), grouped = make_attention(unmixed(2), D);
  share(*attention, *grouped);
  const auto K = D / H;
  auto all = attention->named_parameters(), of_grouped = grouped->named_parameters();
  // Heads 0-3 read component 5, heads 4-7 component 1.
  for (const auto* name : {"then0.key_mix", "then0.value_mix"}) {
    all[name].zero_();
    all[name][5].slice(0, 0, 4).fill_(1);
    all[name][1].slice(0, 4, 8).fill_(1);
  }
  for (const auto* name : {"project.weight", "project.bias"}) {
    const auto whole = all[name];
    const auto rows = [&](int64_t first, int64_t count) { return whole.narrow(0, first * K, count * K); };
    of_grouped[name].copy_(
        torch::cat({rows(0, H), rows(H + 5, 1), rows(H + 1, 1), rows(2 * H + 5, 1), rows(2 * H + 1, 1)}));
  }
  CHECK(difference(forward(*attention, x), forward(*grouped, x)) < 1e-14);
}

TEST_CASE("the cache holds the components alone") {
  for (const int64_t components : {1, 4, 8}) {
    auto attention = make_attention(mixed(components), D);
    State state;
    Forward run;
    auto call = call_of(noise({B, T, D}, "x"), run, causal());
    call.state = &state;
    torch::NoGradGuard no_grad;
    attention->forward(call);
    REQUIRE(state.stored.size() == 2);
    for (const auto& stored : state.stored) CHECK(stored.sizes() == at::IntArrayRef{B, components, T, D / H});
    CHECK(attention->cache_numbers() * H == components * make_attention(unmixed(H), D)->cache_numbers());  // h'/h of it
  }
}

TEST_CASE("components stay while any head does, as each reads them all") {
  auto attention = make_attention(mixed(4), D);
  attention->keep({6});
  CHECK(attention->shape().G() == 4);
  CHECK(attention->named_parameters()["then0.key_mix"].sizes() == at::IntArrayRef{4, 1});
  attention->keep({});
  CHECK(attention->shape().G() == 0);
}

TEST_CASE("heads are mixed at most once") {
  auto options = mixed(4);
  options.then.items.push_back(options.then.items[0]);
  Problems problems;
  attention_rules(options, D, false, "attention", problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "attention.then");
}

}  // namespace headlab
