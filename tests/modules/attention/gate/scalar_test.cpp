#include "modules/attention/gate/scalar.h"

#include "modules/attention/mix/low_rank.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

Shape shape_of(int64_t heads, int64_t head_width, int64_t width) {
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = width;
  shape->head_width = shape->value_width = head_width;
  shape->original_heads = heads;
  for (int64_t h = 0; h < heads; ++h) shape->heads.push_back(h);
  set_groups(*shape, heads);
  return shape;
}

AttentionOptions with_scalar() {
  AttentionOptions options;
  options.heads = 4;
  options.gates.items.emplace_back(gate_catalogue, "scalar");
  return options;
}

}  // namespace

TEST_CASE("a reweighted head is its head times one and the change; the gradient of the change is <dL/dy, z_h W_O^h>",
          "[gate][paper-35]") {
  const DefaultDtype in_double(torch::kFloat64);
  auto attention = make_attention(with_scalar(), small_width);
  const auto x = noise({2, 5, small_width}, "x"), upstream = noise({2, 5, small_width}, "dy");
  auto change = attention->named_parameters()["gate0.change"];
  CHECK(change.numel() == 4);
  struct Heads : Tap {
    Tensor z;
    bool wants(At at, Site) const override { return at == At::z; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override { return z = value; }
  } heads;
  Forward run;
  run.taps = {&heads};
  const auto y = attention->forward(call_of(x, run, causal()));
  const auto gradient = torch::autograd::grad({y}, {change}, {upstream}).front();
  const auto mix = attention->named_parameters()["mix.weight"], bias = attention->named_parameters()["mix.bias"];
  auto expected = bias.expand({2, 5, small_width}).clone();
  for (int64_t h = 0; h < 4; ++h) {
    const auto o = torch::matmul(heads.z.select(1, h), mix.narrow(1, 2 * h, 2).t());
    CHECK(gradient[h].item<double>() == Catch::Detail::Approx((upstream * o).sum().item<double>()));
    expected = expected + (1 + change[h]) * o;
  }
  CHECK((y - expected).abs().max().item<double>() < 1e-12);

  // Without a change it is the attention without the gate; merged into W_O it is the same again.
  auto plain_options = with_scalar();
  plain_options.gates.items.clear();
  auto plain = make_attention(plain_options, small_width);
  const torch::NoGradGuard no_grad;
  for (auto& item : plain->named_parameters()) item.value().copy_(attention->named_parameters()[item.key()]);
  const auto output = [&](const std::shared_ptr<Attention>& of) {
    Forward fresh;
    return of->forward(call_of(x, fresh, causal()));
  };
  const auto before = output(attention);
  for (int64_t h = 0; h < 4; ++h)
    plain->named_parameters()["mix.weight"].narrow(1, 2 * h, 2).mul_(1 + change[h].item<double>());
  CHECK((output(plain) - before).abs().max().item<double>() < 1e-12);
  plain->named_parameters()["mix.weight"].copy_(mix);
  change.zero_();
  CHECK((output(attention) - output(plain)).abs().max().item<double>() < 1e-15);
}

TEST_CASE("a mix of low rank begins as W_O and adds the product of its two matrices", "[mix][paper-35]") {
  const DefaultDtype in_double(torch::kFloat64);
  LowRankMixOptions options;
  options.rank = 2;
  options.scale = 0.5;
  const auto made = std::make_shared<LowRankMix>(options, shape_of(4, 3, 8));
  auto& mix = *made;
  initialise(mix, 1);
  const auto z = noise({2, 4, 5, 3}, "z");
  auto of = mix.named_parameters();
  const auto by_matrix = [&](const Tensor& matrix) {
    return torch::matmul(z.transpose(1, 2).flatten(2), matrix.t()) + of["bias"];
  };
  const torch::NoGradGuard no_grad;
  CHECK((mix.mix(z, {}) - by_matrix(of["weight"])).abs().max().item<double>() == 0);
  of["up"].copy_(noise({8, 2}, "up"));
  CHECK((mix.mix(z, {}) - by_matrix(of["weight"] + 0.5 * torch::matmul(of["up"], of["down"])))
            .abs()
            .max()
            .item<double>() < 1e-13);
  CHECK((mix.per_head(z).sum(1) + of["bias"] - mix.mix(z, {})).abs().max().item<double>() < 1e-13);
}

}  // namespace headlab
