#include "src/measure/windows.h"

#include <nlohmann/json.hpp>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/windows.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

using namespace headlab;

namespace {

Choice windows(std::vector<int64_t> of) {
  Choice gate(gate_catalogue, "windows");
  gate.as<WindowsOptions>().windows = std::move(of);
  return gate;
}

}  // namespace

TEST_CASE("the measured share of context is that of the plan: 0.53125 for windows 8, 8, 128, 128 of 128 tokens") {
  const ToyTask task({4, 7});
  auto self = small_attention();
  self.gates.items = {windows({8, 8, 128, 128})};
  const auto model = make_model(model_choice("decoder_only", small_decoder_only(self)));
  WindowsMeasureOptions options;
  options.length = 128;
  const auto measured = WindowsMeasure(options).measure(*model, task, 1);
  CHECK(measured["acr"] == 0.53125);
  CHECK(measured["layers"]["dec.self.1"] == 0.53125);
  CHECK(measured["pairs"].get<double>() == Catch::Detail::Approx((2 * 996 + 2 * 8256) / (4 * 8256.0)));
  CHECK(measured["windows"]["dec.self.0.1"] == 8);
  CHECK(measured["windows"]["dec.self.1.3"] == 128);
  CHECK(measured["windows"].size() == 8);
  options.length.reset();  // the longest text: 7 tokens, of which windows of 8 and more see all
  const auto whole = WindowsMeasure(options).measure(*model, task, 1);
  CHECK(whole["length"] == 7);
  CHECK(whole["acr"] == 1.0);
}

TEST_CASE("measured windows are those of the heads that are there, in self-attentions, as they are now") {
  const ToyTask task({4, 10});
  auto narrow = small_attention(), adaptive = small_attention();
  narrow.gates.items = {windows({2})};
  adaptive.gates.items = {Choice(gate_catalogue, "adaptive_windows")};
  adaptive.gates.items[0].as<AdaptiveWindowsOptions>().set = {1, 5};
  auto options = small_encoder_decoder();
  options.encoder.attention = narrow;
  options.decoder.attention = adaptive;
  const auto model = make_model(model_choice("encoder_decoder", options));
  const WindowsMeasureOptions of_longest;
  const auto before = WindowsMeasure(of_longest).measure(*model, task, 1);
  CHECK(before["layers"].size() == 4);  // cross-attentions have no windows
  CHECK(before["layers"]["enc.self.0"] == 0.2);
  CHECK(before["layers"]["dec.self.0"] == 1.0);
  CHECK(before["acr"].get<double>() == Catch::Detail::Approx(0.6));
  model->named_buffers()["decoder.layers.0.self_attention.gate0.window"].copy_(
      torch::tensor({1, 5, 5, 1}, torch::kLong));
  model->keep({{Stack::enc_self, {{}, {}}}, {Stack::dec_self, {{1, 3}, {0}}}, {Stack::dec_cross, {{0}, {0}}}});
  const auto after = WindowsMeasure(of_longest).measure(*model, task, 1);
  CHECK(after["layers"].size() == 2);
  CHECK(after["windows"] == nlohmann::ordered_json({{"dec.self.0.1", 5}, {"dec.self.0.3", 1}, {"dec.self.1.0", 10}}));
  CHECK(after["acr"].get<double>() == Catch::Detail::Approx(16.0 / 30));
  CHECK(after["pairs"].get<double>() == Catch::Detail::Approx((40.0 + 10 + 55) / (3 * 55)));
  model->keep({{Stack::dec_self, {{}, {}}}});
  const auto none = WindowsMeasure(of_longest).measure(*model, task, 1);
  CHECK(none["acr"] == 0.0);
  CHECK(none["windows"].empty());
}
