// 2507.07694: heads concatenated some at a time, one output matrix, and the average.
#include "modules/attention/mix/grouped_average.h"

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 3, D = 6, H = 6, K = 3;

Shape shape_with(std::vector<int64_t> heads) {
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = D;
  shape->head_width = shape->value_width = K;
  shape->original_heads = H;
  shape->heads = std::move(heads);
  return shape;
}

Shape all_heads() { return shape_with({0, 1, 2, 3, 4, 5}); }

GroupedAverageOptions together(std::optional<int64_t> count) {
  GroupedAverageOptions options;
  options.concatenated = count;
  return options;
}

AttentionOptions averaged(int64_t count) {
  AttentionOptions options;
  options.heads = H;
  options.head_width = K;
  options.mix.choose("grouped_average");
  options.mix.as<GroupedAverageOptions>().concatenated = count;
  return options;
}

}  // namespace

TEST_CASE("a grouped average is the mean over groups of heads of concatenation times one matrix") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto z = noise({B, H, T, K}, "z");
  for (const int64_t count : {1, 2, 3, 6}) {
    const auto held = std::make_shared<GroupedAverage>(together(count), all_heads());
    auto& mix = *held;
    fill(mix);
    const auto parameters = mix.named_parameters();
    auto expected = torch::zeros({B, T, D});
    for (int64_t first = 0; first < H; first += count)
      expected += reference::concatenate(z.narrow(1, first, count), parameters["weight"], parameters["bias"]) *
                  (static_cast<double>(count) / H);
    CHECK(difference(mix.mix(z, {}), expected) < 1e-14);
    CHECK(difference(mix.per_head(z).sum(1) + mix.nothing(), expected) < 1e-14);
    CHECK(parameters["weight"].numel() == D * count * K);
    CHECK(mix.flops(T, H) == 2 * T * D * count * K);
  }
}

TEST_CASE("without a number, as many heads are concatenated as make the model's width") {
  GroupedAverage mix(together(std::nullopt), all_heads());
  CHECK(shape_text(mix.named_parameters()["weight"]) == "[6, 6]");
  CHECK(grouped_average_problem(together(std::nullopt), 32, 8, 16).empty());
  CHECK_THAT(grouped_average_problem(together(std::nullopt), 32, 8, 5), Catch::Contains("width divides d_model (32)"));
  CHECK_THAT(grouped_average_problem(together(std::nullopt), 24, 8, 8),
             Catch::Contains("divisor of the heads (8), got 3"));
}

TEST_CASE("to concatenate all heads is the plain output") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto z = noise({B, H, T, K}, "z");
  const auto average = std::make_shared<GroupedAverage>(together(H), all_heads());
  Concatenate plain({}, all_heads());
  fill(*average);
  auto its = plain.named_parameters();
  for (const auto& item : average->named_parameters()) its[item.key()].copy_(item.value());
  CHECK(difference(average->mix(z, {}), plain.mix(z, {})) < 1e-15);
}

TEST_CASE("heads keep their places in the one matrix, and the divisor, whichever others are removed") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const int64_t count : {1, 2, 3})
    for (const std::vector<int64_t>& kept : {std::vector<int64_t>{0, 1, 2, 4}, {5, 0}, {1, 3, 5}, {4}, {}}) {
      auto attention = make_attention(averaged(count), D);
      Forward masked;
      masked.scale[Stack::dec_self] = torch::zeros({1, H});
      for (const auto head : kept) masked.scale[Stack::dec_self][0][head] = 1;
      const auto expected = attention->forward(call_of(x, masked, causal()));
      attention->keep(kept);
      Forward run;
      CHECK(difference(attention->forward(call_of(x, run, causal())), expected) < 1e-14);
      CHECK(attention->named_parameters()["mix.weight"].size(1) == count * K);
    }
}

TEST_CASE("heads that are concatenated must divide the heads") {
  CHECK_THROWS_AS(GroupedAverage(together(4), all_heads()), ShapeError);
  Problems problems;
  attention_rules(averaged(4), D, false, "attention", problems);
  REQUIRE(problems.found.size() == 1);
  CHECK(problems.found[0].field == "attention.mix");
  CHECK_THAT(problems.found[0].message, Catch::Contains("divisor of the heads (6), got 4"));
}

}  // namespace headlab
