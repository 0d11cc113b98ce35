#include "tools/templates/gate/my_gate.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

TEST_CASE("my_gate multiplies each head by the sigmoid of its number", "[my_gate]") {
  DefaultDtype guard(torch::kFloat64);
  auto shape = std::make_shared<AttentionShape>();
  shape->heads = {0, 1, 3};  // head 2 was removed
  shape->original_heads = 4;
  MyGate gate(MyGateOptions(), shape);
  auto a = gate.named_parameters()["a"];
  REQUIRE(a.size(0) == 3);
  torch::NoGradGuard no_grad;
  a.copy_(torch::tensor({-1.0, 0.0, 2.5}));
  const auto z = noise({2, 3, 5, 4}, "z"), x = noise({2, 5, 12}, "x");
  Forward run;
  const auto weighed = gate.weigh(z, {}, call_of(x, run));
  for (int64_t h = 0; h < 3; ++h) {
    const auto open = 1 / (1 + std::exp(-a[h].item<double>()));
    CHECK(difference(weighed.select(1, h), z.select(1, h) * open) < 1e-12);
  }
}

TEST_CASE("my_gate starts from its option", "[my_gate]") {
  auto shape = std::make_shared<AttentionShape>();
  shape->heads = {0, 1};
  MyGateOptions options;
  options.initial = -0.5;
  MyGate gate(options, shape);
  torch::NoGradGuard no_grad;
  gate.draw([](const std::string& name) { return named_generator(1, name); });
  CHECK(gate.named_parameters()["a"].eq(-0.5).all().item<bool>());
}
