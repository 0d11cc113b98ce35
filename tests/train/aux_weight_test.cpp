#include "src/train/aux_weight.h"

#include "modules/attention/gate/hard_concrete.h"
#include "modules/base/error.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

AuxWeightOptions weight(const std::string& loss, double factor, int64_t warmup) {
  AuxWeightOptions options;
  options.loss = loss;
  options.factor = factor;
  options.warmup = warmup;
  return options;
}

/// A translator whose encoder has gates with a penalty.
std::shared_ptr<EncoderDecoder> gated_model(const ToyTask& task, double penalty = 0.25) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.dropout = 0;
  options.encoder.layers = options.decoder.layers = 1;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention, &options.decoder.cross_attention})
    attention->heads = 4;
  options.encoder.attention.gates.items.emplace_back(gate_catalogue, "hard_concrete");
  options.encoder.attention.gates.items.back().as<HardConcreteOptions>().penalty = penalty;
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  initialise(*model, 5);
  return model;
}

TrainOptions options_of(int64_t steps, std::vector<AuxWeightOptions> aux) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = 2;
  options.log_every = 1;
  options.schedule.choose("constant");
  options.aux = std::move(aux);
  return options;
}

std::vector<double> penalties(Model& model, const Task& task, const TrainOptions& options) {
  Trainer trainer(model, task, options, 16, 9);
  std::vector<double> seen;
  trainer.run({}, [&](const TrainReport& report) { seen.push_back(report.aux.at("hard_concrete")); });
  return seen;
}

}  // namespace

TEST_CASE("a loss that modules add warms up in a straight line to its factor", "[train]") {
  const AuxWeights weights({weight("l0_round", 2, 4), weight("balance", 0.5, 0)});
  CHECK(weights.of("l0_round", 1) == 0.5);
  CHECK(weights.of("l0_round", 3) == 1.5);
  CHECK(weights.of("l0_round", 4) == 2);
  CHECK(weights.of("l0_round", 400) == 2);
  CHECK(weights.of("balance", 1) == 0.5);
  CHECK(weights.of("router_z", 1) == 1);
}

TEST_CASE("a training's penalty of gates grows by the warm-up, and its gradient with it", "[train]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  // Gates that do not move, at alpha = 2: 4 of 0.25 P(open).
  auto options = options_of(6, {weight("hard_concrete", 1, 4)});
  options.rates.emplace_back();
  options.rates.back().parameters = {"log_alpha"};
  options.rates.back().factor = 0;
  const auto whole = 4 * 0.25 / (1 + std::exp(-(2 + 0.33 * std::log(11.0))));
  auto model = gated_model(task);
  const auto seen = penalties(*model, task, options);
  REQUIRE(seen.size() == 6);
  for (int64_t step = 1; step <= 6; ++step)
    CHECK(seen[static_cast<std::size_t>(step - 1)] ==
          Approx(whole * std::min(1.0, static_cast<double>(step) / 4)).epsilon(1e-12));
  // The step with half the weight is the step of half the coefficient.
  auto halved = gated_model(task), half = gated_model(task, 0.125), full = gated_model(task);
  auto one_step = options_of(1, {weight("hard_concrete", 1, 2)});
  one_step.optimizer.choose("sgd");
  penalties(*halved, task, one_step);
  one_step.aux = {};
  penalties(*half, task, one_step);
  penalties(*full, task, one_step);
  const auto a = halved->named_parameters(), b = half->named_parameters(), c = full->named_parameters();
  for (const auto& item : a) CHECK(difference(item.value(), b[item.key()]) < 1e-14);
  CHECK(difference(a["encoder.layers.0.self_attention.gate0.log_alpha"],
                   c["encoder.layers.0.self_attention.gate0.log_alpha"]) > 1e-9);
}

TEST_CASE("a weight of a loss that no module adds is a mistake that names those there are", "[train]") {
  const ToyTask task({5, 7, 6});
  auto model = gated_model(task);
  CHECK_THROWS_WITH(penalties(*model, task, options_of(1, {weight("hard_concret", 1, 4)})),
                    ContainsSubstring("aux[0].loss") && ContainsSubstring("hard_concrete"));
  auto free = gated_model(task, 0);
  CHECK_THROWS_AS(penalties(*free, task, options_of(1, {weight("hard_concrete", 1, 4)})), UsageError);
}

}  // namespace headlab
