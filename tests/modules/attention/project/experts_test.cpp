// 2210.05144: a mixture of attention heads. The project, the gate and the mix are tried together, as they only stand
// so.
#include "modules/attention/project/experts.h"

#include "modules/attention/attention.h"
#include "modules/attention/gate/route_experts.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/parameters.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 5, D = 8, E = 6, K = 3;

AttentionOptions experts(int64_t k, const std::string& norm = "detached_sum") {
  AttentionOptions options;
  options.heads = E;
  options.head_width = K;
  options.project.choose("experts");
  options.mix.choose("experts");
  options.gates.items.emplace_back(gate_catalogue, "route_experts");
  auto& route = options.gates.items.back().as<RouteExpertsOptions>();
  route.k = k;
  route.norm = norm;
  return options;
}

/// Every expert by loops as multi-query attention, each weighed by weight_BTE.
Tensor by_loops(const Attention& attention, const Tensor& x, const Tensor& weight_BTE) {
  const auto rows = parameter(attention, "project.query_weight").detach().transpose(1, 2).reshape({E * K, D});
  const auto q = reference::project(x, rows, {}, K);
  const auto k = reference::project(x, parameter(attention, "project.key_weight"), {}, K);
  const auto v = reference::project(x, parameter(attention, "project.value_weight"), {}, K);
  const auto z = reference::weigh(q, k, v, std::vector<int64_t>(E, 0), 1 / std::sqrt(static_cast<double>(K)),
                                  [](int64_t, int64_t, int64_t t, int64_t s) { return s <= t; });
  const auto weighed = z * weight_BTE.detach().to(torch::kFloat64).permute({0, 2, 1}).unsqueeze(-1);
  const auto out = parameter(attention, "mix.weight").detach().reshape({E * K, D}).t();
  return reference::concatenate(weighed.contiguous(), out, {});
}

/// p as the formula says it, with all but the k largest of each token set to 0.
Tensor chosen_weights(const Attention& attention, const Tensor& x, int64_t k, bool normalised) {
  const auto p = torch::softmax(torch::matmul(x, parameter(attention, "gate0.weight").t()), -1);
  auto weight = torch::zeros_like(p);
  const auto order = p.argsort(-1, /*descending=*/true).narrow(-1, 0, k);
  weight.scatter_(-1, order, p.gather(-1, order));
  return normalised ? weight / weight.sum(-1, true) : weight;
}

double aux_value(const Forward& run, const std::string& name) {
  for (const auto& aux : run.aux)
    if (aux.name == name) return (aux.sum / aux.count).item<double>();
  throw std::logic_error("no loss " + name);
}

}  // namespace

TEST_CASE("all experts with weight 1 are multi-query attention with a query head for each") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(experts(E, "none"), D);
  parameter(*attention, "gate0.weight").zero_();  // p = 1/E for each
  Forward run;
  const auto y = attention->forward(call_of(x, run, causal()));
  CHECK(difference(y * E, by_loops(*attention, x, torch::ones({B, T, E}))) < 1e-12);

  AttentionOptions multi_query;
  multi_query.heads = E;
  multi_query.head_width = K;
  multi_query.project.choose("grouped");
  auto other = make_attention(multi_query, D);
  parameter(*other, "project.weight")
      .copy_(torch::cat({parameter(*attention, "project.query_weight").transpose(1, 2).reshape({E * K, D}),
                         parameter(*attention, "project.key_weight"), parameter(*attention, "project.value_weight")}));
  parameter(*other, "project.bias").zero_();
  parameter(*other, "mix.weight").copy_(parameter(*attention, "mix.weight").reshape({E * K, D}).t());
  parameter(*other, "mix.bias").zero_();
  CHECK(difference(y * E, other->forward(call_of(x, run, causal()))) < 1e-12);
}

TEST_CASE("each token's k most probable experts are weighed by their probability") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const int64_t k : {1, 2, 5})
    for (const std::string norm : {"none", "detached_sum"}) {
      INFO("k " << k << ", norm " << norm);
      auto attention = make_attention(experts(k, norm), D);
      Forward run;
      const auto y = attention->forward(call_of(x, run, causal()));
      CHECK(difference(y, by_loops(*attention, x, chosen_weights(*attention, x, k, norm != "none"))) < 1e-12);
    }
}

TEST_CASE("the router learns through the probability but not through the sum it is divided by") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x");
  auto divided = make_attention(experts(2), D), plain = make_attention(experts(2, "none"), D);
  const auto chosen = chosen_weights(*divided, x, 2, false).detach();
  const auto sum = chosen.sum(-1, true);
  // With the sum held fixed the output is that of `none` with each token's y divided by it.
  Forward run;
  const auto weight = noise({B, T, D}, "loss");
  (divided->forward(call_of(x, run, causal())) * weight).sum().backward();
  (plain->forward(call_of(x, run, causal())) / sum * weight).sum().backward();
  CHECK(difference(parameter(*divided, "gate0.weight").grad(), parameter(*plain, "gate0.weight").grad()) < 1e-12);
  CHECK(parameter(*divided, "gate0.weight").grad().abs().max().item<double>() > 1e-3);
}

TEST_CASE("a mixture has 2EDK + 2DK + DE parameters") {
  int64_t count = 0;
  for (const auto& p : make_attention(experts(2), D)->parameters()) count += p.numel();
  CHECK(count == 2 * E * D * K + 2 * D * K + D * E);
}

TEST_CASE("experts that no token chose are not computed") {
  const auto x = noise({B, T, D}, "x").abs();
  auto attention = make_attention(experts(2), D);
  {
    torch::NoGradGuard no_grad;
    auto router = parameter(*attention, "gate0.weight");
    router.zero_();
    router[1].fill_(1);  // each token takes experts 1 and 4
    router[4].fill_(2);
    for (const auto* name : {"project.query_weight", "mix.weight"})
      for (int64_t e : {0, 2, 3, 5}) parameter(*attention, name)[e].fill_(std::nan(""));
  }
  attention->train();
  Forward run;
  const auto y = attention->forward(call_of(x, run, causal()));
  CHECK(finite(y));
  auto loss = y.sum();
  for (const auto& aux : run.aux) loss = loss + aux.sum;
  loss.backward();
  for (const auto* name : {"project.query_weight", "mix.weight"}) {
    const auto gradient = parameter(*attention, name).grad();
    for (int64_t e : {0, 2, 3, 5}) CHECK(gradient[e].abs().max().item<float>() == 0);
    for (int64_t e : {1, 4}) CHECK(gradient[e].abs().max().item<float>() > 0);
  }
  for (const auto* name : {"project.key_weight", "project.value_weight", "gate0.weight"})
    CHECK(finite(parameter(*attention, name).grad()));
}

TEST_CASE("router-normalised-twice: at the start the balance term is 1 and the z-loss (ln E)^2", "[cases]") {
  auto attention = make_attention(experts(2), D);
  initialise(*attention, 1);
  CHECK(parameter(*attention, "gate0.weight").abs().max().item<float>() == 0);
  attention->train();
  Forward run;
  attention->forward(call_of(noise({B, T, D}, "x"), run, causal()));
  const RouteExpertsOptions defaults;
  CHECK(aux_value(run, "balance") == Approx(defaults.balance * 1.0));
  CHECK(aux_value(run, "router_z") == Approx(defaults.z_loss * std::pow(std::log(static_cast<double>(E)), 2)));
  CHECK(std::pow(std::log(8.0), 2) == Approx(4.324).epsilon(1e-3));
}

TEST_CASE("router-normalised-twice: skewed logits give one softmax, averaged over all experts", "[cases]") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(experts(2), D);
  attention->train();
  const auto x = 3 * noise({B, T, D}, "x");
  Forward run;
  attention->forward(call_of(x, run, causal()));
  const auto logits = torch::matmul(x, parameter(*attention, "gate0.weight").t()).flatten(0, 1);
  double expected = 0, z = 0;
  std::vector<double> mean(E, 0.0), share(E, 0.0);
  for (int64_t n = 0; n < B * T; ++n) {
    double sum = 0;
    std::vector<std::pair<double, int64_t>> p;
    for (int64_t e = 0; e < E; ++e) sum += std::exp(logits[n][e].item<double>());
    for (int64_t e = 0; e < E; ++e) p.emplace_back(std::exp(logits[n][e].item<double>()) / sum, e);
    for (const auto& [value, e] : p) mean[e] += value / (B * T);
    std::sort(p.rbegin(), p.rend());
    for (int i = 0; i < 2; ++i) share[p[i].second] += 1.0 / (2 * B * T);
    z += std::log(sum) * std::log(sum) / (B * T);
  }
  for (int64_t e = 0; e < E; ++e) expected += E * mean[e] * share[e];
  const RouteExpertsOptions defaults;
  CHECK(expected > 1.01);
  CHECK(aux_value(run, "balance") == Approx(defaults.balance * expected).epsilon(1e-10));
  CHECK(aux_value(run, "router_z") == Approx(defaults.z_loss * z).epsilon(1e-10));
}

TEST_CASE("padding-in-balance-loss: pads leave the router's losses as they are", "[cases]") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(experts(2), D);
  attention->train();
  const auto x = noise({B, T, D}, "x");
  const auto losses = [&](const Tensor& input, const Tensor& mask) {
    Forward run;
    auto see = causal();
    see.query_mask_BT = mask;
    attention->forward(call_of(input, run, see));
    return std::pair(aux_value(run, "balance"), aux_value(run, "router_z"));
  };
  const auto before = losses(x, {});
  for (const int64_t pads : {1, 4}) {
    const auto longer = torch::cat({x, 5 * noise({B, pads, D}, "pads")}, 1);
    const auto after = losses(longer, mask_of({T, T}, T + pads));
    CHECK(after.first == Approx(before.first).epsilon(1e-12));
    CHECK(after.second == Approx(before.second).epsilon(1e-12));
    CHECK(losses(longer, {}).second != Approx(before.second).epsilon(1e-3));
  }
  CHECK(losses(x, torch::zeros({B, T}, torch::kBool)) == std::pair(0.0, 0.0));
}

TEST_CASE("tokens that chose a removed expert choose among those left") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(experts(2), D);
  const auto whole = std::dynamic_pointer_cast<Attention>(attention->clone());
  attention->keep({1, 4, 5});
  // The same as a router that never takes the others: their probability is 0.
  const auto logits = torch::matmul(x, parameter(*whole, "gate0.weight").t());
  auto p = torch::zeros({B, T, E});
  const auto left = torch::tensor({1, 4, 5});
  p.index_copy_(-1, left, torch::softmax(logits.index_select(-1, left), -1));
  const auto order = p.argsort(-1, true).narrow(-1, 0, 2);
  auto weight = torch::zeros_like(p).scatter(-1, order, p.gather(-1, order));
  Forward run;
  CHECK(difference(attention->forward(call_of(x, run, causal())), by_loops(*whole, x, weight / weight.sum(-1, true))) <
        1e-12);
  attention->keep({4});  // fewer than k
  CHECK(finite(attention->forward(call_of(x, run, causal()))));
  attention->keep({});
  CHECK(attention->forward(call_of(x, run, causal())).abs().max().item<double>() == 0);
}

TEST_CASE("a scale belongs to an expert, whichever token chose it") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(experts(3), D);
  const auto weight = chosen_weights(*attention, x, 3, true);
  const auto scale = noise({B, 1, E}, "scale");
  Forward shared, each;
  shared.scale[Stack::dec_self] = scale[0];
  each.scale[Stack::dec_self] = scale;
  CHECK(difference(attention->forward(call_of(x, shared, causal())), by_loops(*attention, x, weight * scale[0])) <
        1e-12);
  CHECK(difference(attention->forward(call_of(x, each, causal())), by_loops(*attention, x, weight * scale)) < 1e-12);
}

TEST_CASE("each expert multiplies its own rows alone, in any order") {
  DefaultDtype guard(torch::kFloat64);
  const auto rows = noise({5, 3}, "rows"), weight = noise({4, 3, 2}, "weight");
  const auto chosen = torch::tensor({3, 1, 0, 3, 3, 1, 1, 0, 3, 0}, torch::kLong);  // two a row; expert 2: none
  const auto y = expert_product(rows, chosen, weight, 2);
  for (int64_t i = 0; i < 10; ++i) {
    const auto expected = torch::matmul(rows[i / 2], weight[chosen[i].item<int64_t>()]);
    CHECK(difference(y[i], expected) < 1e-14);
  }
  CHECK(shape_text(expert_product(rows.narrow(0, 0, 0), chosen.narrow(0, 0, 0), weight)) == "[0, 2]");
}

TEST_CASE("the gradients of experts' products are those of the rows that each multiplied") {
  DefaultDtype guard(torch::kFloat64);
  const auto rows = noise({5, 3}, "rows").requires_grad_(), weight = noise({4, 3, 2}, "weight").requires_grad_();
  const auto chosen = torch::tensor({3, 1, 0, 3, 3, 1, 1, 0, 3, 0}, torch::kLong),
             upstream = noise({10, 2}, "upstream");
  const auto made = torch::autograd::grad({expert_product(rows, chosen, weight, 2)}, {rows, weight}, {upstream});
  std::vector<Tensor> products;
  for (int64_t i = 0; i < 10; ++i) products.push_back(torch::matmul(rows[i / 2], weight[chosen[i].item<int64_t>()]));
  const auto plain = torch::autograd::grad({torch::stack(products)}, {rows, weight}, {upstream});
  CHECK(difference(made[0], plain[0]) < 1e-13);
  CHECK(difference(made[1], plain[1]) < 1e-13);
}

TEST_CASE("k experts are at most those there are") {
  CHECK_THROWS_WITH(Attention(experts(E + 1), D, D, false),
                    "gates.route_experts.k: expected at most the number of heads (6), got 7");
}

}  // namespace headlab
