// 2608.19203: what windows are, however heads come to them: given, drawn, dealt, or chosen in training.
#include "modules/attention/gate/held_windows.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/taps.h"

namespace headlab {
namespace {

constexpr int64_t D = 8, T = 16;
using Numbers = std::vector<int64_t>;

Choice gate_of(const std::string& mode, const Numbers& windows) {
  Choice gate(gate_catalogue, mode);
  auto sorted = windows;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (mode == "windows") gate.as<WindowsOptions>().windows = windows;
  if (mode == "random_windows") gate.as<RandomWindowsOptions>().set = windows;
  if (mode == "shuffled_windows") gate.as<ShuffledWindowsOptions>().windows = windows;
  if (mode == "adaptive_windows") gate.as<AdaptiveWindowsOptions>().set = sorted;
  return gate;
}

/// Each way to have windows, with these; adaptive ones as a checkpoint that has decided so would bring them.
void for_each_mode(const Numbers& windows, const std::function<void(Attention&, const Numbers& of_heads)>& check) {
  for (const auto* mode : {"windows", "random_windows", "shuffled_windows", "adaptive_windows"}) {
    INFO(mode);
    auto options = small_attention();
    options.gates.items = {gate_of(mode, windows)};
    const auto attention = make_attention(options, D);
    if (std::string(mode) == "adaptive_windows")
      attention->named_buffers()["gate0.window"].copy_(torch::tensor(windows, torch::kLong));
    HeadOutline outline{4, {}};
    attention->gate_list()[0]->outline(outline);
    REQUIRE(outline.window_H.size() == 4);
    for (auto window : outline.window_H) CHECK(std::count(windows.begin(), windows.end(), window) > 0);
    check(*attention, outline.window_H);
  }
}

Tensor heads_of(Attention& attention, const Tensor& x) {
  torch::NoGradGuard no_grad;
  Tensor z;
  LambdaTap tap([](At at, Site) { return at == At::z; }, [&](At, Site, Tensor value) { return z = value; });
  Forward run;
  run.taps = {&tap};
  attention.forward(call_of(x, run, causal()));
  return z;
}

std::shared_ptr<Model> decoder(const Choice& gate, int64_t layers, uint64_t seed, const HeadTable& kept = {}) {
  auto attention = small_attention();
  attention.gates.items = {gate};
  auto options = small_decoder_only(attention);
  options.decoder.layers = layers;
  auto model = models().make(model_choice("decoder_only", options), small_context(kept));
  initialise(*model, seed);
  return model;
}

std::vector<Numbers> windows_of(const Model& model) {
  std::vector<Numbers> all;
  for (const auto& [site, mixer] : model.mixers())
    all.push_back(dynamic_cast<HeldWindows&>(*dynamic_cast<Attention&>(*mixer).gate_list()[0]).windows());
  return all;
}

}  // namespace

TEST_CASE("windows as long as the text are full attention, however heads come to them") {
  const auto x = noise({2, T, D}, "x");
  const auto full = heads_of(*make_attention(small_attention(), D), x);
  for (const int64_t window : {T, T + 1, 10 * T})
    for_each_mode({window, window, window, window}, [&](Attention& attention, const Numbers&) {
      CHECK(difference(heads_of(attention, x), full) < 1e-6);
    });
  for_each_mode({T - 1, T - 1, T - 1, T - 1},
                [&](Attention& attention, const Numbers&) { CHECK(difference(heads_of(attention, x), full) > 1e-3); });
}

TEST_CASE("a token as far back as a head's window leaves it as it is, bit for bit, however the head came to it") {
  const auto x = noise({1, T, D}, "x");
  for_each_mode({1, 3, 5, 7}, [&](Attention& attention, const Numbers& windows) {
    const auto before = heads_of(attention, x);
    for (const int64_t changed : {0, 4}) {
      auto other = x.clone();
      other.select(1, changed).add_(1);
      const auto after = heads_of(attention, other);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t t = 0; t < T; ++t)
          CHECK(torch::equal(after[0][h][t], before[0][h][t]) == (t < changed || t >= changed + windows[h]));
    }
  });
}

TEST_CASE("a head of window W sees W(W+1)/2 + (T-W)W pairs, however it came to it") {
  constexpr int64_t length = 128;
  for_each_mode({8, 8, 20, 128}, [&](Attention& attention, const Numbers& windows) {
    torch::NoGradGuard no_grad;
    Seen weights(At::weights);
    Forward run;
    run.taps = {&weights};
    attention.forward(call_of(noise({1, length, D}, "x"), run, causal()));
    for (int64_t h = 0; h < 4; ++h) {
      const auto seen = weights.value()[0][h].gt(0).sum().item<int64_t>();
      CHECK(seen == visible_pairs(windows[h], length));
      if (windows[h] == 8) CHECK(seen == 996);
      if (windows[h] == 20) CHECK(seen == 20 * 21 / 2 + 108 * 20);
      if (windows[h] == 128) CHECK(seen == 128 * 129 / 2);
    }
  });
}

TEST_CASE("random windows are drawn from the set by seed and layer, each as often") {
  const auto gate = gate_of("random_windows", {3, 5, 0});
  const auto drawn = windows_of(*decoder(gate, 60, 1));
  CHECK(windows_of(*decoder(gate, 60, 1)) == drawn);
  CHECK(windows_of(*decoder(gate, 60, 2)) != drawn);
  CHECK(std::set<Numbers>(drawn.begin(), drawn.end()).size() > 20);  // layers draw for themselves
  std::map<int64_t, int64_t> times;
  for (const auto& layer : drawn)
    for (auto window : layer) ++times[window];
  CHECK(times.size() == 3);
  for (auto window : {3, 5, 0}) CHECK(std::abs(times[window] - 80) < 37);  // of 240: five standard deviations
}

TEST_CASE("shuffled windows are the given ones in every layer, in orders of the seed and the layer") {
  const auto gate = gate_of("shuffled_windows", {8, 2, 0, 2});
  const auto dealt = windows_of(*decoder(gate, 60, 1));
  CHECK(windows_of(*decoder(gate, 60, 1)) == dealt);
  CHECK(windows_of(*decoder(gate, 60, 2)) != dealt);
  std::array<std::map<int64_t, int64_t>, 4> at;  // how often a head has a window
  for (const auto& layer : dealt) {
    auto sorted = layer;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == Numbers{0, 2, 2, 8});
    for (std::size_t h = 0; h < 4; ++h) ++at[h][layer[h]];
  }
  for (const auto& head : at) {
    CHECK(std::abs(head.at(0) - 15) < 17);
    CHECK(std::abs(head.at(2) - 30) < 20);
  }
}

TEST_CASE("each kept head keeps its drawn window, also where the others were never made") {
  for (const auto& gate :
       {gate_of("random_windows", {1, 2, 3, 4, 5, 6, 7}), gate_of("shuffled_windows", {4, 1, 3, 2})}) {
    INFO(gate.type());
    const auto whole = decoder(gate, 2, 4);
    const auto before = windows_of(*whole);
    const HeadTable kept{{Stack::dec_self, {{2}, {1, 3}}}};
    const std::vector<Numbers> expected{{before[0][2]}, {before[1][1], before[1][3]}};
    whole->keep(kept);
    CHECK(windows_of(*whole) == expected);
    CHECK(windows_of(*std::dynamic_pointer_cast<Model>(whole->clone())) == expected);
    CHECK(windows_of(*decoder(gate, 2, 4, kept)) == expected);
    whole->keep({{Stack::dec_self, {{}, {3}}}});
    CHECK(windows_of(*whole) == std::vector<Numbers>{{}, {before[1][3]}});
  }
}

TEST_CASE("windows that are held fail for a wrong count, and in a cross-attention") {
  const auto made = [](const Choice& gate, bool cross) {
    auto options = small_attention();
    options.gates.items = {gate};
    Attention(options, D, D, cross);
  };
  CHECK_THROWS_WITH(made(gate_of("shuffled_windows", {1, 2, 3}), false),
                    "gates.shuffled_windows: expected one window for each of 4 heads, got 3");
  for (const auto* mode : {"random_windows", "shuffled_windows", "adaptive_windows"})
    CHECK_THROWS_WITH(made(gate_of(mode, {1, 2, 3, 4}), true),
                      ContainsSubstring("gates." + std::string(mode) + ": expected a self-attention"));
  const auto problems_of = [](std::vector<Choice> gates, bool cross = false) {
    auto options = small_attention();
    options.gates.items = std::move(gates);
    Problems problems;
    attention_rules(options, D, cross, "a", problems);
    return problems.found.empty() ? std::string("none") : problems.found[0].field + ": " + problems.found[0].message;
  };
  CHECK(problems_of({gate_of("random_windows", {1})}) == "none");
  CHECK(problems_of({gate_of("shuffled_windows", {1, 2})}) ==
        "a.gates[0].windows: expected one window for each of 4 heads, got 2");
  CHECK(problems_of({gate_of("random_windows", {1}), gate_of("windows", {1})}) ==
        "a.gates[1]: windows can't stand beside random_windows: a head has one window");
  CHECK(problems_of({gate_of("adaptive_windows", {1})}, true) ==
        "a.gates[0]: adaptive_windows: expected a self-attention; a cross-attention's queries and keys share no "
        "positions");
  AdaptiveWindowsOptions unsorted;
  unsorted.set = {4, 8, 8};
  Problems problems;
  unsorted.rules(problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "set[2]");
}

}  // namespace headlab
