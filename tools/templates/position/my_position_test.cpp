#include "tools/templates/position/my_position.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

TEST_CASE("my_position lets scores fall by each head's slope times the distance", "[my_position]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto shape = std::make_shared<AttentionShape>();
  shape->heads = {0, 1, 3};  // head 2 was removed
  shape->original_heads = 4;
  MyPosition position(MyPositionOptions(), shape);
  auto slope = position.named_parameters()["slope"];
  slope.copy_(torch::tensor({0.5, 0.0, -2.0}));
  const auto bias = position.bias({}, torch::tensor({3, 4}, torch::kLong), torch::arange(5));
  REQUIRE(bias.sizes() == at::IntArrayRef({1, 3, 2, 5}));
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 5; ++j)
        CHECK(bias[0][h][i][j].item<double>() ==
              Approx(-slope[h].item<double>() * std::abs(static_cast<double>(i + 3 - j))));
  shape->cross = true;
  CHECK_THROWS_AS(MyPosition(MyPositionOptions(), shape), ShapeError);
}
