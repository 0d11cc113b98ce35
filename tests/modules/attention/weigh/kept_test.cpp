// Tokens that units keep, against loops.
#include "modules/attention/weigh/kept.h"

#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {

TEST_CASE("what units keep of texts stands in rows, in order, and goes back to its places", "[weigh][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  constexpr int64_t B = 2, G = 3, T = 7, W = 4;
  auto held = noise({B, G, T}, "held").gt(0.3);
  held[1][2].zero_();  // one that keeps nothing
  const KeptTokens tokens(held);
  const auto n = tokens.rows();
  CHECK(n == held.sum(-1).max().item<int64_t>());
  const auto of_text = noise({B, T, W}, "x"), of_units = noise({B, G, T, W}, "y");
  const auto texts = tokens.of_texts(of_text), units = tokens.of_units(of_units), rows = noise({B, G, n, W}, "rows");
  const auto back = tokens.back(rows), sum = tokens.sum(rows), real = tokens.real_BGn();
  auto expected_sum = torch::zeros({B, T, W});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t g = 0; g < G; ++g) {
      int64_t row = 0;
      for (int64_t t = 0; t < T; ++t) {
        if (!held[b][g][t].item<bool>()) {
          CHECK(back[b][g][t].abs().sum().item<double>() == 0);
          continue;
        }
        CHECK(tokens.places_BGn()[b][g][row].item<int64_t>() == t);
        CHECK(torch::equal(texts[b][g][row], of_text[b][t]));
        CHECK(torch::equal(units[b][g][row], of_units[b][g][t]));
        CHECK(torch::equal(back[b][g][t], rows[b][g][row]));
        expected_sum[b][t] += rows[b][g][row];
        ++row;
      }
      for (int64_t i = 0; i < n; ++i) CHECK(real[b][g][i].item<bool>() == (i < row));
    }
  CHECK(difference(sum, expected_sum) < 1e-15);
}

TEST_CASE("rows are added behind those that are taken, and caches grow to what the fullest unit needs",
          "[weigh][paper-28]") {
  const DefaultDtype in_double(torch::kFloat64);
  constexpr int64_t B = 2, G = 3, W = 4;
  const auto held = noise({B, G, 5}, "held").gt(0);
  const auto kept = held.sum(-1);
  const KeptTokens tokens(held);
  const auto more = noise({B, G, tokens.rows(), W}, "more");
  const auto before = torch::tensor({{0, 3, 1}, {2, 0, 3}}, torch::kLong);
  for (const bool learns : {true, false}) {
    const torch::AutoGradMode mode(learns);
    const auto old = noise({B, G, 3, W}, "old");
    std::vector<Tensor> caches{old.clone(), old.clone()};
    tokens.add_to(caches, before, {more, 2 * more});
    for (int64_t i = 0; i < 2; ++i) {
      CHECK(caches[static_cast<std::size_t>(i)].size(2) == (before + kept).max().item<int64_t>());
      for (int64_t b = 0; b < B; ++b)
        for (int64_t g = 0; g < G; ++g) {
          const auto had = before[b][g].item<int64_t>(), came = kept[b][g].item<int64_t>();
          const auto& cache = caches[static_cast<std::size_t>(i)][b][g];
          CHECK(torch::equal(cache.slice(0, 0, had), old[b][g].slice(0, 0, had)));
          CHECK(torch::equal(cache.slice(0, had, had + came), (i + 1) * more[b][g].slice(0, 0, came)));
        }
    }
  }
}

}  // namespace headlab
