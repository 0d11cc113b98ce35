// 2108.01377: a second attention, over the heads' outputs, says how much each head counts for a token.
#include "modules/attention/gate/dynamic_importance.h"

#include <numeric>

#include "modules/attention/attention.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, D = 8, H = 4;

AttentionOptions weighed(bool rescale = true, double weight = 0.1) {
  auto options = small_attention();
  options.value_width = 3;
  options.gates.items.emplace_back(gate_catalogue, "dynamic_importance");
  auto& own = options.gates.items.back().as<DynamicImportanceOptions>();
  own.rescale = rescale;
  own.weight = weight;
  return options;
}

const DynamicImportance& gate_of(const Attention& attention) {
  return dynamic_cast<const DynamicImportance&>(*attention.gate_list().front());
}

/// softmax_h(W_q x_t . W_k z_ht / sqrt(K)), number by number: [B,H,T].
Tensor importances_by_loops(const Tensor& z, const Tensor& x, const Tensor& query_weight, const Tensor& key_weight) {
  const auto zs = z.accessor<double, 4>();
  const auto xs = x.accessor<double, 3>();
  const auto wq = query_weight.accessor<double, 2>(), wk = key_weight.accessor<double, 2>();
  const auto heads = z.size(1), K = z.size(3);
  auto a = torch::zeros({z.size(0), heads, z.size(2)}, torch::kFloat64);
  auto as = a.accessor<double, 3>();
  for (int64_t b = 0; b < z.size(0); ++b)
    for (int64_t t = 0; t < z.size(2); ++t) {
      double sum = 0;
      for (int64_t h = 0; h < heads; ++h) {
        double score = 0;
        for (int64_t i = 0; i < K; ++i) {
          double q = 0, k = 0;
          for (int64_t d = 0; d < x.size(2); ++d) q += wq[i][d] * xs[b][t][d];
          for (int64_t j = 0; j < K; ++j) k += wk[i][j] * zs[b][h][t][j];
          score += q * k;
        }
        sum += as[b][h][t] = std::exp(score / std::sqrt(static_cast<double>(K)));
      }
      for (int64_t h = 0; h < heads; ++h) as[b][h][t] /= sum;
    }
  return a;
}

/// z before the gates of one pass, and what the pass added to the loss.
struct Pass {
  Tensor y, z;
  std::vector<Aux> aux;
};
Pass pass_of(Attention& attention, const Tensor& x, Visibility see, const Tensor& memory = {}) {
  Pass pass;
  LambdaTap tap([](At at, Site) { return at == At::z; }, [&](At, Site, Tensor value) { return pass.z = value; });
  Forward run;
  run.taps = {&tap};
  pass.y = attention.forward(
      call_of(x, run, std::move(see), memory, {memory.defined() ? Stack::dec_cross : Stack::dec_self, 0}));
  pass.aux = run.aux;
  return pass;
}

}  // namespace

TEST_CASE(
    "importances of heads are a softmax over heads, by loops, in self- and cross-attention, and scale what heads "
    "give") {
  DefaultDtype guard(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), memory = noise({B, 7, D}, "memory");
  for (const bool cross : {false, true})
    for (const bool rescale : {true, false}) {
      auto attention = make_attention(weighed(rescale), D, cross);
      const auto p = attention->named_parameters();
      const auto pass = pass_of(*attention, x, cross ? Visibility() : causal(), cross ? memory : Tensor());
      const auto a = importances_by_loops(pass.z, x, p["gate0.query_weight"], p["gate0.key_weight"]);
      CHECK(difference(gate_of(*attention).importances(pass.z, x), a) < 1e-14);
      CHECK(difference(a.sum(1), torch::ones({B, T})) < 1e-14);
      CHECK(a.max().item<double>() - a.min().item<double>() > 0.05);
      const auto expected = reference::concatenate((pass.z * a.unsqueeze(-1) * (rescale ? 4 : 1)).contiguous(),
                                                   p["mix.weight"], p["mix.bias"]);
      CHECK(difference(pass.y, expected) < 1e-13);
    }
}

TEST_CASE("without what asks, importances are uniform, and rescaled ones are plain attention bit for bit") {
  const torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(weighed(), D);
  attention->named_parameters()["gate0.query_weight"].zero_();
  auto options = weighed();
  options.gates.items.clear();
  auto plain = make_attention(options, D);
  const auto pass = pass_of(*attention, x, causal());
  CHECK(torch::equal(pass.y, pass_of(*plain, x, causal()).y));
  CHECK(torch::equal(gate_of(*attention).importances(pass.z, x), torch::full({B, H, T}, 0.25)));
}

TEST_CASE(
    "the loss of importances is minus its weight times the mean KL from uniform over real tokens: 0 of uniform, ln H "
    "of one head") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto see = causal();
  see.query_mask_BT = mask_of({5, 2}, T);
  const auto mean_kl = [](const std::vector<Aux>& aux) {
    REQUIRE(aux.size() == 1);
    CHECK(aux[0].name == "dynamic_importance");
    CHECK(aux[0].count.item<double>() == 7);
    return -(aux[0].sum / aux[0].count).item<double>() / 0.3;
  };
  auto attention = make_attention(weighed(true, 0.3), D);
  CHECK(pass_of(*attention, x, see).aux.empty());  // a loss of training alone
  attention->train();
  const auto pass = pass_of(*attention, x, see);
  const auto a = gate_of(*attention).importances(pass.z, x);
  double sum = 0;
  for (const auto& [b, length] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {1, 2}})
    for (int64_t t = 0; t < length; ++t)
      for (int64_t h = 0; h < H; ++h) {
        const auto one = a[b][h][t].item<double>();
        sum += one * std::log(one * 4);
      }
  CHECK(mean_kl(pass.aux) == Approx(sum / 7).epsilon(1e-12));
  {
    const torch::NoGradGuard no_grad;
    auto query_weight = attention->named_parameters()["gate0.query_weight"];
    const auto before = query_weight.clone();
    query_weight.zero_();
    CHECK(mean_kl(pass_of(*attention, x, see).aux) == Approx(0).margin(1e-15));
    query_weight.copy_(before * 1e7);  // one head alone, at each token
    CHECK(mean_kl(pass_of(*attention, x, see).aux) == Approx(std::log(4)).epsilon(1e-12));
  }
  auto without = make_attention(weighed(true, 0), D);
  without->train();
  CHECK(pass_of(*without, x, see).aux.empty());
}

TEST_CASE("a step against the loss of importances drives them away from uniform") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(weighed(), D);
  attention->train();
  const auto loss = [&] {
    const auto aux = pass_of(*attention, x, causal()).aux;
    return aux.at(0).sum / aux.at(0).count;
  };
  const auto before = loss();
  before.backward();
  const torch::NoGradGuard no_grad;
  for (const std::string name : {"gate0.query_weight", "gate0.key_weight"}) {
    auto weight = attention->named_parameters()[name];
    CHECK(weight.grad().abs().max().item<double>() > 0);
    weight.sub_(weight.grad());
  }
  CHECK(loss().item<double>() < before.item<double>());
}

TEST_CASE("importances of heads add D K + K^2 parameters and 2 T K (D + K + H) operations to an attention") {
  auto options = weighed();
  const auto with = make_attention(options, D);
  options.gates.items.clear();
  const auto plain = make_attention(options, D);
  const auto count = [](const Attention& attention) {
    int64_t sum = 0;
    for (const auto& parameter : attention.parameters()) sum += parameter.numel();
    return sum;
  };
  CHECK(count(*with) - count(*plain) == D * 3 + 3 * 3);
  CHECK(with->flops(T, T, true) - plain->flops(T, T, true) == 2 * T * 3 * (D + 3 + H));
  with->keep({0, 2});  // W_q and W_k are those of all heads
  plain->keep({0, 2});
  CHECK(count(*with) - count(*plain) == D * 3 + 3 * 3);
  CHECK(with->flops(T, T, true) - plain->flops(T, T, true) == 2 * T * 3 * (D + 3 + 2));
}

TEST_CASE("importances of the heads that are left sum to 1, and scale by how many are left") {
  DefaultDtype guard(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(weighed(), D);
  attention->keep({1, 3});
  const auto p = attention->named_parameters();
  const auto pass = pass_of(*attention, x, causal());
  const auto a = importances_by_loops(pass.z, x, p["gate0.query_weight"], p["gate0.key_weight"]);
  CHECK(a.size(1) == 2);
  CHECK(difference(pass.y, reference::concatenate((pass.z * a.unsqueeze(-1) * 2).contiguous(), p["mix.weight"],
                                                  p["mix.bias"])) < 1e-13);
}

}  // namespace headlab
