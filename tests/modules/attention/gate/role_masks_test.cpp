#include "modules/attention/gate/role_masks.h"

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/taps.h"

namespace headlab {
namespace {

AttentionOptions with_roles(std::vector<std::string> roles) {
  auto options = small_attention();
  options.gates.items.emplace_back(gate_catalogue, "role_masks");
  options.gates.items.back().as<RoleMasksOptions>().roles = std::move(roles);
  return options;
}

constexpr int64_t T = 6;

}  // namespace

TEST_CASE("masks of ones are no masks; a head of a role gives no weight outside it, and zeros where nothing is left",
          "[gate][paper-26]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({2, T, small_width}, "x");
  const auto plain = make_attention(small_attention(), small_width),
             guided = make_attention(with_roles({"a", "", "b"}), small_width);
  Forward bare, ones;
  for (const auto* role : {"a", "b"}) ones.side[role_side(role)] = torch::ones({2, T, T}, torch::kBool);
  CHECK(difference(guided->forward(call_of(x, ones, {}, {}, {Stack::enc_self, 0})),
                   plain->forward(call_of(x, bare, {}, {}, {Stack::enc_self, 0}))) < 1e-12);

  const auto a = noise({2, T, T}, "a").gt(0);
  auto b = noise({2, T, T}, "b").gt(0);
  b[1][3].fill_(false);
  Seen seen(At::weights);
  Forward run, fast;
  for (auto* of : {&run, &fast}) of->side = {{role_side("a"), a}, {role_side("b"), b}};
  run.taps = {&seen};
  Visibility see;
  see.key_mask_BS = mask_of({T, T - 2}, T);
  const auto y = guided->forward(call_of(x, run, see, {}, {Stack::enc_self, 0}));
  CHECK(difference(guided->forward(call_of(x, fast, see, {}, {Stack::enc_self, 0})), y) < 1e-12);
  for (int64_t batch = 0; batch < 2; ++batch)
    for (int64_t i = 0; i < T; ++i) {
      double sum_of_1 = 0;
      for (int64_t j = 0; j < T; ++j) {
        const bool real = batch == 0 || j < T - 2;
        const auto weight = [&](int64_t head) { return seen.value()[batch][head][i][j].item<double>(); };
        CHECK((weight(0) > 0) == (real && a[batch][i][j].item<bool>()));
        CHECK((weight(2) > 0) == (real && b[batch][i][j].item<bool>()));
        CHECK((weight(1) > 0) == real);
        CHECK((weight(3) > 0) == real);
        sum_of_1 += weight(1);
      }
      CHECK(sum_of_1 == Catch::Detail::Approx(1));
    }
  CHECK(seen.value()[1][2][3].abs().sum().item<double>() == 0);
}

TEST_CASE("no gradient comes to the keys of tokens that no head may look at", "[gate][paper-26]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto guided = make_attention(with_roles({"a", "a", "a", "a"}), small_width);
  struct Keys : Tap {
    Tensor k;
    bool wants(At at, Site) const override { return at == At::k; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override {
      value.retain_grad();
      return k = value;
    }
  } keys;
  auto allowed = torch::ones({1, T, T}, torch::kBool);
  allowed.select(2, 4).fill_(false);
  Forward run;
  run.side[role_side("a")] = allowed;
  run.taps = {&keys};
  const auto x = noise({1, T, small_width}, "x");
  (guided->forward(call_of(x, run, {}, {}, {Stack::enc_self, 0})) * noise({1, T, small_width}, "dy")).sum().backward();
  const auto gradient = keys.k.grad().abs().sum({0, 1, 3});
  for (int64_t s = 0; s < T; ++s) CHECK((gradient[s].item<double>() > 0) == (s != 4));
}

TEST_CASE("a removed head takes its role with it", "[gate][paper-26]") {
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  auto guided = make_attention(with_roles({"a", "b", "", "a"}), small_width);
  const auto x = noise({2, T, small_width}, "x");
  Forward masked, removed;
  for (auto* of : {&masked, &removed})
    of->side = {{role_side("a"), noise({2, T, T}, "a").gt(0)}, {role_side("b"), noise({2, T, T}, "b").gt(0)}};
  masked.scale[Stack::enc_self] = torch::tensor({0.0, 1.0, 0.0, 1.0}).view({1, 4});
  const auto expected = guided->forward(call_of(x, masked, {}, {}, {Stack::enc_self, 0}));
  guided->keep({1, 3});
  CHECK(difference(guided->forward(call_of(x, removed, {}, {}, {Stack::enc_self, 0})), expected) < 1e-12);
}

TEST_CASE("roles that nobody tells, of another length, or too many, are errors that say so", "[gate][paper-26]") {
  const auto guided = make_attention(with_roles({"rare"}), small_width);
  const auto x = noise({2, T, small_width}, "x");
  Forward run;
  CHECK_THROWS_WITH(
      guided->forward(call_of(x, run, {}, {}, {Stack::enc_self, 1})),
      ContainsSubstring(
          "enc.self.1: nothing says which keys belong to the role \"rare\"; expected it among task.roles"));
  run.side[role_side("rare")] = torch::ones({2, T + 1, T + 1}, torch::kBool);
  CHECK_THROWS_WITH(guided->forward(call_of(x, run, {}, {}, {Stack::enc_self, 1})),
                    ContainsSubstring("expected [2, 6, 6]"));
  run.side[role_side("rare")] = torch::ones({2, T, T}, torch::kBool);
  State state;
  auto cached = call_of(x, run, causal());
  cached.state = &state;
  CHECK_THROWS_WITH(guided->forward(cached), ContainsSubstring("need the whole text at once"));
  CHECK_THROWS_WITH(make_attention(with_roles({"a", "a", "a", "a", "a"}), small_width),
                    ContainsSubstring("at most a role for each of 4 heads, got 5"));
  CHECK_THROWS_AS(make_attention(with_roles({"a"}), small_width, /*cross=*/true), ShapeError);
}

}  // namespace headlab
