#include "tools/templates/mix/my_mix.h"

#include "tests/catch.h"
#include "tests/support/models.h"

using namespace headlab;

TEST_CASE("my_mix adds up the heads' shares of the output, by loops", "[my_mix]") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto shape = std::make_shared<AttentionShape>();
  shape->width = 6;
  shape->value_width = 3;
  shape->heads = {0, 2};  // head 1 was removed
  shape->original_heads = 3;
  MyMix mix(MyMixOptions(), shape);
  auto parameters = mix.named_parameters();
  for (auto& item : parameters) item.value().copy_(noise(item.value().sizes(), item.key()));
  const auto z = noise({2, 2, 4, 3}, "z");
  const auto y = mix.mix(z, {});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t d = 0; d < 6; ++d) {
        auto expected = parameters["bias"][d].item<double>();
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t k = 0; k < 3; ++k)
            expected += parameters["share"][h].item<double>() * z[b][h][t][k].item<double>() *
                        parameters["weight"][d][3 * h + k].item<double>();
        CHECK(y[b][t][d].item<double>() == Approx(expected).margin(1e-12));
      }
  CHECK(difference(mix.per_head(z).sum(1) + parameters["bias"], y) < 1e-12);
}
