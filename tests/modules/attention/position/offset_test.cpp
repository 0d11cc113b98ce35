#include "modules/attention/position/offset.h"

#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

AttentionOptions looking(std::vector<int64_t> offsets) {
  auto options = small_attention();
  options.position.choose("offset");
  options.position.as<OffsetOptions>().offsets = std::move(offsets);
  return options;
}

struct Values : Tap {
  Tensor v, z;
  bool wants(At at, Site) const override { return at == At::v || at == At::z; }
  Tensor see(At at, Site, Tensor value, const AttentionCall*) override { return (at == At::v ? v : z) = value; }
};

}  // namespace

TEST_CASE("a head with an offset gives the value that lies so far back, and zeros where there is none", "[position]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> offsets{0, 1, -2, 7};
  const auto attention = make_attention(looking(offsets), small_width);
  const auto x = noise({2, 5, small_width}, "x");
  for (const bool with_causal : {false, true}) {
    Values seen;
    Forward run;
    run.taps = {&seen};
    attention->forward(call_of(x, run, with_causal ? causal() : Visibility{}));
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < 5; ++t) {
        const auto from = t - offsets[static_cast<std::size_t>(h)];
        const bool there = from >= 0 && from < 5 && !(with_causal && from > t);
        const auto expected = there ? seen.v.select(1, h).select(1, from) : torch::zeros({2, 2});
        CHECK(torch::equal(seen.z.select(1, h).select(1, t), expected));
      }
  }
}

TEST_CASE("an offset for each head is asked for", "[position]") {
  CHECK_THROWS_WITH(make_attention(looking({1, 2}), small_width),
                    ContainsSubstring("expected an offset for each of 4 heads, got 2"));
  CHECK_THROWS_AS(make_attention(looking({1, 2, 3, 4}), small_width, /*cross=*/true), ShapeError);
}

}  // namespace headlab
