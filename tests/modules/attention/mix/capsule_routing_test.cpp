// Routing by agreement (1710.09829, procedure 1) and by EM (openreview HJWLfGWRb), against loops over double numbers.
#include "modules/attention/mix/capsule_routing.h"

#include "tests/catch.h"
#include "tests/modules/attention/mix/routing_by_loops.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 3, I = 5, J = 4, C = 3;
using Take = DynamicRouting::Take;

std::shared_ptr<EmRouting> em_routing(const EmRoutingOptions& options, int64_t capsules, double times,
                                      double constant) {
  auto routing = std::make_shared<EmRouting>(options, capsules, times, constant);
  fill(*routing, 0.5);
  return routing;
}

EmRoutingOptions em_options(int64_t iterations, double floor = 1e-6, double temperature = 0.1, bool rising = false) {
  EmRoutingOptions options;
  options.iterations = iterations;
  options.floor = floor;
  options.temperature = temperature;
  options.rising = rising;
  return options;
}

/// The largest difference of a routing and of loops over each token.
double apart_from_loops(const Routing& routing, const Tensor& votes,
                        const std::function<reference::Found(const Tensor&)>& loops) {
  const torch::NoGradGuard no_grad;
  const auto routed = routing.route(votes);
  double worst = 0;
  for (int64_t b = 0; b < votes.size(0); ++b)
    for (int64_t t = 0; t < votes.size(1); ++t) {
      const auto found = loops(votes[b][t]);
      worst = std::max({worst, difference(routed.capsules_BTJC[b][t], found.capsules_JC),
                        difference(routed.couplings_BTIJ[b][t], found.couplings_IJ)});
    }
  return worst;
}

/// The largest error of a gradient of the votes and parameters against differences, of a random sum of the capsules.
double worst_gradient(Routing& routing) {
  auto votes = noise({1, 2, I, J, C}, "votes").requires_grad_();
  const auto weight = noise({1, 2, J, C}, "loss");
  const auto loss = [&] { return (routing.route(votes).capsules_BTJC * weight).sum(); };
  loss().backward();
  auto tensors = routing.parameters();
  tensors.push_back(votes);
  const torch::NoGradGuard no_grad;
  constexpr double step = 1e-6;
  double worst = 0;
  for (auto& tensor : tensors) {
    auto values = tensor.view(-1);
    const auto gradient = tensor.grad().reshape(-1);
    for (int64_t i = 0; i < values.numel(); ++i) {
      const auto before = values[i].item<double>();
      values[i] = before + step;
      const auto up = loss().item<double>();
      values[i] = before - step;
      const auto down = loss().item<double>();
      values[i] = before;
      const auto found = (up - down) / (2 * step);
      worst = std::max(worst, std::abs(found - gradient[i].item<double>()) / (1 + std::abs(found)));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("dynamic routing equals loops, to sums, means and squashed sums", "[paper-04][paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto votes = noise({B, T, I, J, C}, "votes");
  for (const auto take : {Take::sum, Take::mean, Take::squash})
    for (const int64_t iterations : {1, 2, 3, 6}) {
      CAPTURE(static_cast<int>(take), iterations);
      CHECK(apart_from_loops(DynamicRouting(iterations, take), votes, [&](const Tensor& of_token) {
              return reference::dynamic_routing(of_token, iterations, take == Take::mean, take == Take::squash);
            }) < 1e-12);
    }
}

TEST_CASE("EM routing equals loops, also where variances are at their floor and where the temperature rises",
          "[paper-04][paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto votes = noise({B, T, I, J, C}, "votes");
  for (const double floor : {1e-6, 1e-2, 1.0})
    for (const bool rising : {false, true})
      for (const int64_t iterations : {1, 2, 3, 6}) {
        CAPTURE(floor, rising, iterations);
        const auto routing = em_routing(em_options(iterations, floor, 0.3, rising), J, 2.5, 0.7);
        const auto parameters = routing->named_parameters();
        CHECK(apart_from_loops(*routing, votes, [&](const Tensor& of_token) {
                return reference::em_routing(
                    of_token, iterations, floor,
                    [&](int64_t round) { return rising ? 0.3 * static_cast<double>(round) : 0.3; },
                    parameters["activate"], parameters["cost"], 2.5, 0.7);
              }) < 1e-11);
      }
}

TEST_CASE("two heads that vote for a capsule each: 0.5, 0.6225, 0.7544 after one, two and three rounds", "[paper-04]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto votes = torch::eye(2, torch::kFloat64).view({1, 1, 2, 2, 1});
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const std::vector<double> exact{0.5, sigmoid(0.5), sigmoid(0.5 + sigmoid(0.5))}, rounded{0.5, 0.6225, 0.7544};
  for (int64_t iterations = 1; iterations <= 3; ++iterations) {
    const auto capsules = DynamicRouting(iterations, Take::mean).route(votes).capsules_BTJC.flatten();
    const auto round = static_cast<std::size_t>(iterations - 1);
    for (int64_t j = 0; j < 2; ++j) {
      CHECK(std::abs(capsules[j].item<double>() - exact[round]) < 1e-15);
      CHECK(std::abs(capsules[j].item<double>() - rounded[round]) < 5e-5);
    }
  }
}

TEST_CASE("gradients go through all rounds of a routing", "[paper-04][paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  for (const int64_t iterations : {1, 3, 5}) {
    CAPTURE(iterations);
    for (const auto take : {Take::sum, Take::mean, Take::squash}) {
      DynamicRouting routing(iterations, take);
      CHECK(worst_gradient(routing) < 1e-7);
    }
    for (const bool rising : {false, true}) {
      CHECK(worst_gradient(*em_routing(em_options(iterations, 1e-2, 0.3, rising), J, 1.5, 0.4)) < 1e-7);
    }
  }
}

TEST_CASE("couplings of an input capsule add up to 1, and inputs that vote alike are coupled alike", "[paper-45]") {
  const DefaultDtype in_double(torch::kFloat64);
  auto votes = noise({B, T, I, J, C}, "votes");
  votes.select(2, 3).copy_(votes.select(2, 1));
  const auto em = em_routing(em_options(3), J, 1, 0);
  const DynamicRouting dynamic(3, Take::squash);
  const torch::NoGradGuard no_grad;
  for (const auto* routing : {static_cast<const Routing*>(em.get()), static_cast<const Routing*>(&dynamic)}) {
    const auto couplings = routing->route(votes).couplings_BTIJ;
    CHECK(difference(couplings.sum(-1), torch::ones({B, T, I})) < 1e-12);
    CHECK(difference(couplings.select(2, 3), couplings.select(2, 1)) == 0);
    CHECK(difference(couplings.select(2, 3), couplings.select(2, 2)) > 1e-3);
    CHECK(couplings.min().item<double>() >= 0);
  }
}

TEST_CASE("votes of zeros, equal votes and very large ones give finite capsules and gradients",
          "[paper-04][paper-45]") {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const DefaultDtype guard(type);
    for (const auto& given :
         {torch::zeros({B, T, I, J, C}), torch::ones({B, T, I, J, C}), 1e3 * noise({B, T, I, J, C}, "votes"),
          1e-12 * noise({B, T, I, J, C}, "votes"), noise({B, T, 1, J, C}, "one"), noise({B, T, I, 1, C}, "one")}) {
      const auto check = [&](Routing& routing) {
        const auto votes = given.clone().requires_grad_();
        const auto routed = routing.route(votes);
        CHECK(finite(routed.capsules_BTJC));
        CHECK(finite(routed.couplings_BTIJ));
        routed.capsules_BTJC.sum().backward();
        CHECK(finite(votes.grad()));
        for (const auto& parameter : routing.parameters()) CHECK(finite(parameter.grad()));
      };
      for (const auto take : {Take::sum, Take::mean, Take::squash}) {
        DynamicRouting routing(4, take);
        check(routing);
      }
      check(*em_routing(em_options(4, 1e-6, 1, true), given.size(3), 1, 1.4));
    }
  }
}

TEST_CASE("routing computes bfloat16 votes in 32 bits") {
  const auto votes = noise({B, T, I, J, C}, "votes").to(torch::kBFloat16);
  const torch::NoGradGuard no_grad;
  for (const auto take : {Take::mean, Take::squash}) {
    const auto routed = DynamicRouting(3, take).route(votes).capsules_BTJC;
    CHECK(routed.scalar_type() == torch::kFloat32);
    CHECK(torch::equal(routed, DynamicRouting(3, take).route(votes.to(torch::kFloat32)).capsules_BTJC));
  }
  CHECK(em_routing(em_options(3), J, 1, 0)->route(votes).capsules_BTJC.scalar_type() == torch::kFloat32);
}

TEST_CASE("heads of a group are coupled alike, heads of different groups are not, in each of 20 draws", "[paper-45]") {
  // 8 inputs in 3 noisy groups, one matrix for all of them, 4 rounds: nothing has been trained.
  const DefaultDtype in_double(torch::kFloat64);
  const std::vector<int64_t> group{0, 0, 0, 1, 1, 1, 2, 2};
  constexpr int64_t K = 16;
  double all_within = 0, all_between = 0, first_between = 0;
  for (int draw = 0; draw < 20; ++draw) {
    const auto name = std::to_string(draw);
    const auto z_IK =
        2 * noise({3, K}, "centres" + name).index_select(0, torch::tensor(group)) + 0.1 * noise({8, K}, "heads" + name);
    const auto votes = torch::matmul(z_IK, noise({K, 4 * K}, "matrix" + name) / 4).view({1, 1, 8, 4, K});
    const auto variation = [&](int64_t iterations, bool within) {
      const auto c_IJ = DynamicRouting(iterations, Take::squash).route(votes).couplings_BTIJ[0][0];
      double sum = 0;
      int count = 0;
      for (int64_t i = 0; i < 8; ++i)
        for (int64_t k = 0; k < i; ++k)
          if ((group[static_cast<std::size_t>(i)] == group[static_cast<std::size_t>(k)]) == within) {
            sum += (c_IJ[i] - c_IJ[k]).abs().sum().item<double>() / 2;
            ++count;
          }
      return sum / count;
    };
    CHECK(variation(4, true) < variation(4, false));
    all_within += variation(4, true) / 20;
    all_between += variation(4, false) / 20;
    first_between += variation(1, false) / 20;
  }
  CAPTURE(all_within, all_between);
  CHECK(all_within < 0.1);
  CHECK(all_between > 0.7);
  CHECK(first_between == 0);  // one round: couplings are uniform
}

TEST_CASE("the work of a routing is that of its sums: 2 r - 1 of dynamic routing's r rounds, 3 r - 1 of EM's") {
  CHECK(DynamicRouting(3, Take::mean).flops(10, 8, 4, 16) == 2 * 10 * 8 * 4 * 16 * 5);
  CHECK(DynamicRouting(1, Take::squash).flops(10, 8, 4, 16) == 2 * 10 * 8 * 4 * 16);
  CHECK(EmRouting(em_options(3), 4, 1, 0).flops(10, 8, 4, 16) == 2 * 10 * 8 * 4 * 16 * 8);
}

}  // namespace headlab
