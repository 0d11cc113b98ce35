#include "src/measure/frequencies.h"

#include <nlohmann/json.hpp>
#include <numbers>

#include "modules/attention/position/adarope.h"
#include "modules/attention/project/standard.h"
#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

namespace headlab {

using Catch::Detail::Approx;

TEST_CASE("measured frequencies are those of each head's table, with wavelengths, factors and their spread over heads",
          "[measure][paper-02]") {
  const torch::NoGradGuard no_grad;
  const ToyTask task({4, 7});
  auto self = small_attention();
  self.head_width = 4;
  self.project.choose("grouped");
  self.project.as<GroupedProjectOptions>().groups = 2;
  self.position.choose("adarope");
  self.position.as<AdaRopeOptions>().base = 100;
  self.position.as<AdaRopeOptions>().train_length = 8;
  auto options = small_decoder_only(self);
  options.decoder.layers = 1;
  const auto model = make_model(model_choice("decoder_only", options));
  initialise(*model, 1);
  FrequenciesMeasure measure{NoOptions()};
  const auto before = measure.measure(*model, task, 1);
  CHECK(before["heads"].size() == 4);
  CHECK(before["spread"].get<double>() == Approx(0).margin(1e-7));
  CHECK(before["heads"]["dec.self.0.3"]["frequencies"][1].get<double>() == Approx(0.1));
  CHECK(before["heads"]["dec.self.0.3"]["factor"] == 1.0);

  auto parameters = model->named_parameters();
  const std::string position = "decoder.layers.0.self_attention.position.";
  parameters[position + "log_frequency"].copy_(torch::tensor({{0.0, -1.0}, {0.5, -5.0}}));
  parameters[position + "factor"].copy_(torch::tensor({1.0, 2.0, 3.0, 4.0}));
  parameters[position + "growth"].copy_(torch::tensor({0.0, 0.1, 0.2, 0.3}));
  model->keep({{Stack::dec_self, {{1, 2}}}});
  const auto after = measure.measure(*model, task, 1);
  CHECK(after["heads"].size() == 2);
  const auto &first = after["heads"]["dec.self.0.1"], &second = after["heads"]["dec.self.0.2"];
  CHECK(first["frequencies"][1].get<double>() == Approx(std::exp(-1.0)));
  CHECK(second["frequencies"][1].get<double>() == Approx(std::exp(-5.0)));
  CHECK(second["wavelengths"][0].get<double>() == Approx(2 * std::numbers::pi / std::exp(0.5)));
  CHECK(second["factor"] == 3.0);
  CHECK(first["growth"].get<double>() == Approx(0.1));
  CHECK(after["spread"].get<double>() == Approx((0.25 + 2.0) / 2));  // half the distance of two heads, by pair
}

TEST_CASE("a model without adaptive rotary positions has no frequencies to measure", "[measure][paper-02]") {
  const ToyTask task({4});
  CHECK_THROWS_WITH(FrequenciesMeasure(NoOptions()).measure(*toy_model(task), task, 1),
                    "frequencies: expected a model of which an attention has the position adarope");
}

}  // namespace headlab
