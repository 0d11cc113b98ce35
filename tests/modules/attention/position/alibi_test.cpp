#include "modules/attention/position/alibi.h"

#include <cmath>

#include "modules/attention/gate/windows.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {
namespace {

AttentionOptions alibi_attention(const std::string& bias = "outside", bool learned = false) {
  auto options = small_attention();
  options.position.choose("alibi");
  options.position.as<AlibiOptions>().bias = bias;
  options.position.as<AlibiOptions>().learned = learned;
  return options;
}

int times(const std::map<std::string, int>& ran, const std::string& name) { return ran.count(name) ? ran.at(name) : 0; }
const char* const flash = "aten::_scaled_dot_product_flash_attention_for_cpu";
const char* const math = "aten::_scaled_dot_product_attention_math";

}  // namespace

TEST_CASE("the slopes of 8 heads are 1/2 to 1/256") {
  CHECK(alibi_slopes(8) ==
        std::vector<double>{1 / 2.0, 1 / 4.0, 1 / 8.0, 1 / 16.0, 1 / 32.0, 1 / 64.0, 1 / 128.0, 1 / 256.0});
  CHECK(alibi_slopes(1) == std::vector<double>{1 / 256.0});
  CHECK(alibi_slopes(2) == std::vector<double>{1 / 16.0, 1 / 256.0});
  const auto of_16 = alibi_slopes(16);
  for (int i = 0; i < 16; ++i) CHECK(of_16[i] == Approx(std::pow(2.0, -0.5 * (i + 1))).epsilon(1e-15));
}

TEST_CASE("heads that are no power of two take every other slope of twice the power below") {
  CHECK(alibi_slopes(3) == std::vector<double>{1 / 16.0, 1 / 256.0, 1 / 4.0});
  CHECK(alibi_slopes(6) == std::vector<double>{1 / 4.0, 1 / 16.0, 1 / 64.0, 1 / 256.0, 1 / 2.0, 1 / 8.0});
  const auto of_12 = alibi_slopes(12);  // those of 8, and the first, third, fifth and seventh of 16
  for (int i = 0; i < 8; ++i) CHECK(of_12[i] == std::exp2(-(i + 1)));
  for (int i = 0; i < 4; ++i) CHECK(of_12[8 + i] == Approx(std::exp2(-0.5 * (2 * i + 1))).epsilon(1e-15));
}

TEST_CASE("ALiBi equals an explicit additive mask of scores") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({2, 6, small_width}, "x");
  for (const std::string where : {"outside", "inside"}) {
    auto with = make_attention(alibi_attention(where), small_width),
         without = make_attention(small_attention(), small_width);
    LambdaTap tap([](At at, Site) { return at == At::scores; },
                  [&](At, Site, Tensor scores) {
                    auto mask = torch::zeros({small_heads, 6, 6});
                    for (int64_t h = 0; h < small_heads; ++h)
                      for (int64_t i = 0; i < 6; ++i)
                        for (int64_t j = 0; j < 6; ++j)
                          mask[h][i][j] = -std::pow(2.0, -2.0 * static_cast<double>(h + 1)) *
                                          static_cast<double>(std::abs(i - j)) /
                                          (where == "inside" ? std::sqrt(2.0) : 1.0);
                    return scores + mask;
                  });
    for (const bool is_causal : {true, false}) {
      Visibility see;
      see.causal = is_causal;
      Forward plain, tapped;
      tapped.taps = {&tap};
      const auto y = with->forward(call_of(x, plain, see));
      CHECK(difference(y, without->forward(call_of(x, tapped, see))) < 1e-12);
      CHECK(difference(y, without->forward(call_of(x, plain, see))) > 1e-3);
    }
  }
}

TEST_CASE("ALiBi knows distances alone") {
  DefaultDtype guard(torch::kFloat64);
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = 2;
  shape->original_heads = 4;
  shape->heads = {0, 1, 2, 3};
  const auto alibi = std::make_shared<Alibi>(AlibiOptions(), shape);
  const auto near = alibi->bias({}, torch::arange(5), torch::arange(5)),
             far = alibi->bias({}, torch::arange(1000, 1005), torch::arange(1000, 1005));
  CHECK(shape_text(near) == "[1, 4, 5, 5]");
  CHECK(torch::equal(near, far));
  CHECK(near[0][1][4][1].item<double>() == -3.0 / 16);
  // Positions for each example.
  const auto each = alibi->bias({}, torch::stack({torch::arange(3), torch::arange(7, 10)}),
                                torch::stack({torch::arange(3), torch::arange(3)}));
  CHECK(shape_text(each) == "[2, 4, 3, 3]");
  CHECK(torch::equal(each[0], near[0].slice(1, 0, 3).slice(2, 0, 3)));
  CHECK(each[1][0][2][0].item<double>() == -9.0 / 4);
}

TEST_CASE("a removed head takes its slope with it and the others keep theirs") {
  for (const bool learned : {false, true}) {
    auto attention = make_attention(alibi_attention("outside", learned), small_width);
    const auto slope = [&](Attention& of) {
      return learned ? of.named_parameters()["position.slope"] : of.named_buffers()["position.slope"];
    };
    const auto before = slope(*attention).detach().clone();
    attention->keep({1, 3});
    CHECK(torch::equal(slope(*attention), before.index_select(0, torch::tensor({1, 3}))));
    // Made with these heads, drawn anew, they are the same.
    auto made = std::make_shared<Attention>(alibi_attention("outside", learned), small_width, small_width, false,
                                            std::vector<int64_t>{1, 3});
    initialise(*made, 1);
    CHECK(slope(*made)[0].item<double>() == 1 / 16.0);
    CHECK(slope(*made)[1].item<double>() == 1 / 256.0);
  }
}

TEST_CASE("fixed slopes stay in LibTorch's fused kernel; learned ones leave it while they learn") {
  const auto x = noise({2, 6, small_width}, "x");
  const Site site{Stack::dec_self, 0};
  for (const bool learned : {false, true}) {
    auto attention = make_attention(alibi_attention("outside", learned), small_width);
    Forward run;
    auto see = causal();
    see.key_mask_BS = mask_of({6, 4}, 6);
    auto ran = operators_of([&] { attention->forward(call_of(x, run, see)).sum().backward(); });
    CHECK(attention->fusable(site, run) == !learned);
    CHECK(times(ran, flash) == (learned ? 0 : 1));
    CHECK(times(ran, math) == (learned ? 1 : 0));
    torch::NoGradGuard no_grad;
    ran = operators_of([&] { attention->forward(call_of(x, run, see)); });
    CHECK(attention->fusable(site, run));
    CHECK(times(ran, flash) == 1);
    CHECK(times(ran, math) == 0);
  }
}

TEST_CASE("slopes learn: their gradient is that of the weights by distance") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(alibi_attention("outside", true), small_width);
  const auto x = noise({1, 5, small_width}, "x"), loss = noise({1, 5, small_width}, "loss");
  Forward run;
  Tensor scores;
  LambdaTap tap([](At at, Site) { return at == At::scores; },
                [&](At, Site, Tensor value) {
                  value.retain_grad();
                  return scores = value;
                });
  run.taps = {&tap};
  Visibility both_ways;
  (attention->forward(call_of(x, run, both_ways)) * loss).sum().backward();
  const auto at = torch::arange(5).to(torch::kFloat64);
  const auto distance = (at.unsqueeze(1) - at).abs();
  CHECK(difference(attention->named_parameters()["position.slope"].grad(),
                   -(scores.grad() * distance).sum(at::IntArrayRef{0, 2, 3})) < 1e-12);
  attention->zero_grad();
  Forward fast;  // without the tap: LibTorch's own products
  (attention->forward(call_of(x, fast, both_ways)) * loss).sum().backward();
  CHECK(difference(attention->named_parameters()["position.slope"].grad(),
                   -(scores.grad() * distance).sum(at::IntArrayRef{0, 2, 3})) < 1e-12);
}

TEST_CASE("ALiBi and windows with a cache give what the full pass gives, whatever the chunks") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto options = alibi_attention("inside");
  options.gates.items.emplace_back(gate_catalogue, "windows");
  options.gates.items.back().as<WindowsOptions>().windows = {3, 0, 1, 4};
  auto attention = make_attention(options, small_width);
  const auto x = noise({2, 9, small_width}, "x");
  Forward run;
  const auto full = attention->forward(call_of(x, run, causal()));
  for (const std::vector<int64_t>& chunks :
       {std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 3, 1}, {6, 3}, {2, 7}}) {
    State state;
    int64_t read = 0;
    for (auto length : chunks) {
      auto call = call_of(x.narrow(1, read, length), run, causal());
      call.q_pos = call.k_pos = torch::arange(read, read + length);
      call.state = &state;
      CHECK(difference(attention->forward(call), full.narrow(1, read, length)) < 1e-12);
      read += length;
    }
  }
}

TEST_CASE("ALiBi in half precision is finite and in its type") {
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    auto attention = make_attention(alibi_attention(), small_width);
    attention->to(type);
    torch::NoGradGuard no_grad;
    Forward run;
    auto call = call_of(noise({1, 5, small_width}, "x").to(type), run, causal());
    call.q_pos = call.k_pos = torch::arange(4000, 4005);
    const auto far = attention->forward(call);
    CHECK(far.scalar_type() == type);
    call.q_pos = call.k_pos = torch::arange(5);
    CHECK(torch::equal(far, attention->forward(call)));  // distances are exact wherever they stand
  }
}

TEST_CASE("ALiBi is refused in a cross-attention and beside routed experts") {
  CHECK_THROWS_WITH(
      Attention(alibi_attention(), small_width, small_width, true),
      "position.alibi: expected a self-attention; a cross-attention's queries and keys share no positions");
  Problems problems;
  attention_rules(alibi_attention(), small_width, true, "cross_attention", problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "cross_attention.position");
  CHECK(problems.found[0].message ==
        "alibi: expected a self-attention; a cross-attention's queries and keys share no positions");
  auto routed = alibi_attention();
  routed.project.choose("experts");
  routed.mix.choose("experts");
  routed.gates.items.emplace_back(gate_catalogue, "route_experts");
  routed.weigh.score.choose("additive");
  Problems more;
  attention_rules(routed, small_width, false, "attention", more);
  REQUIRE(more.found.size() == 2);
  CHECK(more.found[0].message ==
        "alibi can't go with routed experts: it has parameters for each head, and a token's heads differ");
  CHECK(more.found[1].field == "attention.weigh.score");
}

}  // namespace headlab
