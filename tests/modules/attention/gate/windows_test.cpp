// 2608.19203, the fixed plan: a window of keys for each head.
#include "modules/attention/gate/windows.h"

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t D = 8, T = 16;

std::shared_ptr<Attention> with_windows(const std::vector<int64_t>& windows) {
  auto options = small_attention();
  if (!windows.empty()) {
    options.gates.items.emplace_back(gate_catalogue, "windows");
    options.gates.items.back().as<WindowsOptions>().windows = windows;
  }
  return make_attention(options, D);
}

Tensor heads_of(Attention& attention, const Tensor& x, const Visibility& see = causal()) {
  torch::NoGradGuard no_grad;
  Tensor z;
  LambdaTap tap([](At at, Site) { return at == At::z; }, [&](At, Site, Tensor value) { return z = value; });
  Forward run;
  run.taps = {&tap};
  attention.forward(call_of(x, run, see));
  return z;
}

}  // namespace

TEST_CASE("a window as long as the text is full attention") {
  const auto x = noise({2, T, D}, "x");
  auto full = with_windows({});
  for (const int64_t window : {T, T + 1, 10 * T})
    CHECK(difference(heads_of(*with_windows({window}), x), heads_of(*full, x)) < 1e-6);
  CHECK(torch::equal(heads_of(*with_windows({0}), x), heads_of(*full, x)));
  CHECK(difference(heads_of(*with_windows({T - 1}), x), heads_of(*full, x)) > 1e-3);
}

TEST_CASE("a token as far back as the window leaves that head's output as it is, bit for bit") {
  const std::vector<int64_t> windows{1, 3, 5, 0};  // 1 to 5: cut into blocks; 0: all
  auto attention = with_windows(windows);
  const auto x = noise({1, T, D}, "x");
  const auto before = heads_of(*attention, x);
  for (const int64_t changed : {0, 4, 9}) {
    auto other = x.clone();
    other.select(1, changed).add_(1);
    const auto after = heads_of(*attention, other);
    for (int64_t h = 0; h < 4; ++h) {
      INFO("head " << h << ", token " << changed);
      const auto window = windows[h] == 0 ? T : windows[h];
      const auto end = std::min(changed + window, T);  // the first query that no longer sees it
      CHECK(torch::equal(after[0][h].slice(0, 0, changed), before[0][h].slice(0, 0, changed)));
      CHECK(torch::equal(after[0][h].slice(0, end), before[0][h].slice(0, end)));
      for (int64_t t = changed; t < end; ++t) CHECK(!torch::equal(after[0][h][t], before[0][h][t]));
    }
  }
}

TEST_CASE("a window reaches both ways where attention is not causal") {
  auto attention = with_windows({3});
  const auto x = noise({1, T, D}, "x");
  auto other = x.clone();
  other.select(1, 8).add_(1);
  const auto before = heads_of(*attention, x, {}), after = heads_of(*attention, other, {});
  for (int64_t t = 0; t < T; ++t) CHECK(torch::equal(before[0][0][t], after[0][0][t]) == (std::abs(t - 8) > 2));
}

TEST_CASE("blocks of a window give what a mask gives, at every length, one way and both, with padding and without") {
  DefaultDtype guard(torch::kFloat64);
  for (const bool is_causal : {true, false})
    for (const bool padded : {false, true})
      for (const int64_t window : {1, 2, 3, 5})
        for (int64_t length = 2 * window; length <= 4 * window + 1; ++length) {
          const auto q = noise({2, 4, length, 3}, "q").requires_grad_(),
                     k = noise({2, 2, length, 3}, "k").requires_grad_(),
                     v = noise({2, 2, length, 3}, "v").requires_grad_();
          const auto weight = noise({2, 4, length, 3}, "loss");
          INFO("window " << window << ", length " << length << (is_causal ? ", causal" : "")
                         << (padded ? ", padded" : ""));
          Visibility see;
          see.causal = is_causal;
          // The first text has padding at its end, so long that some queries see nothing; the second at its beginning.
          if (padded) {
            see.key_mask_BS = torch::ones({2, length}, torch::kBool);
            see.key_mask_BS[0].slice(0, length / 2).fill_(false);
            see.key_mask_BS[1].slice(0, 0, length / 3).fill_(false);
          }
          const auto z = windowed_attention(q, k, v, see, window, 0.5);
          const auto mask = visible(q, k, see, window, true);
          if (!padded && is_causal) CHECK(mask.sum().item<int64_t>() == visible_pairs(window, length));
          const auto expected = at::scaled_dot_product_attention(q, k, v, mask, 0, false, 0.5, true);
          CHECK(difference(z, expected) < 1e-12);
          const auto one = torch::autograd::grad({(z * weight).sum()}, {q, k, v});
          const auto two = torch::autograd::grad({(expected * weight).sum()}, {q, k, v});
          for (int i = 0; i < 3; ++i) CHECK(difference(one[i], two[i]) < 1e-12);
        }
}

TEST_CASE("visible pairs and the share of context that windows allocate") {
  CHECK(visible_pairs(8, 128) == 996);
  CHECK(visible_pairs(0, 128) == 128 * 129 / 2);
  CHECK(visible_pairs(500, 128) == 128 * 129 / 2);
  CHECK(allocated_context_ratio({8, 8, 128, 128}, 128) == Approx(0.53125));
  CHECK(allocated_context_ratio({0, 0}, 128) == Approx(1.0));
  for (const int64_t window : {1, 2, 7}) {
    const auto q = torch::zeros({1, 1, 20, 1});
    CHECK(visible(q, q, causal(), window, true).sum().item<int64_t>() == visible_pairs(window, 20));
  }
}

TEST_CASE("windows fail for a wrong count and in a cross-attention") {
  CHECK_THROWS_WITH(with_windows({1, 2}), "gates.windows: expected one window, or one for each of 4 heads, got 2");
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "windows");
  options.gates.items.back().as<WindowsOptions>().windows = {2};
  CHECK_THROWS_WITH(Attention(options, D, D, true), ContainsSubstring("expected a self-attention"));
}

}  // namespace headlab
