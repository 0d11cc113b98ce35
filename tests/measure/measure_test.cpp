#include "src/measure/measure.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/support/toy_task.h"

using namespace headlab;

TEST_CASE("scores of random queries and keys have the variance of the formula, and the scale brings it to sigma^4") {
  const ToyTask task({4, 5});
  const auto model = toy_model(task);
  ScoreMeasureOptions options;
  options.width = 32;
  options.queries = 2048;  // 131072 scores: the standard error of their variance is about 0.4 %
  const auto centred = ScoreMeasure(options).measure(*model, task, 1);
  CHECK(centred["expected"] == 32);
  CHECK(std::abs(centred["variance"].get<double>() / 32 - 1) < 0.02);
  CHECK(std::abs(centred["scaled_variance"].get<double>() - 1) < 0.02);
  options.sigma = 0.5;
  options.query_mean = 1;
  options.key_mean = -0.5;
  const auto shifted = ScoreMeasure(options).measure(*model, task, 2);
  // K (s^4 + s^2 m_q^2 + s^2 m_k^2)
  CHECK(std::abs(shifted["expected"].get<double>() - 32 * (0.0625 + 0.25 + 0.0625)) < 1e-12);
  CHECK(std::abs(shifted["variance"].get<double>() / shifted["expected"].get<double>() - 1) < 0.02);
}

TEST_CASE("the measured gradient of softmax is the norm of its Jacobian") {
  // One query whose scores are known: with sigma tiny all scores are equal, w = 1/S, and the Jacobian is (I - 1/S)/S,
  // whose Frobenius norm is sqrt(S - 1) / S.
  const ToyTask task({4, 5});
  const auto model = toy_model(task);
  ScoreMeasureOptions options;
  options.sigma = 1e-9;
  options.keys = 8;
  options.queries = 10;
  const auto flat = ScoreMeasure(options).measure(*model, task, 1);
  CHECK(std::abs(flat["gradient"].get<double>() - std::sqrt(7.0) / 8) < 1e-9);
  CHECK(std::abs(flat["largest_weight"].get<double>() - 1.0 / 8) < 1e-9);
  options.sigma = 100;  // saturated: no gradient is left
  options.scale = 1;
  const auto saturated = ScoreMeasure(options).measure(*model, task, 1);
  CHECK(saturated["gradient"].get<double>() < 1e-3);
  CHECK(saturated["largest_weight"].get<double>() > 0.999);
}

TEST_CASE("gradients by layer are those of the parameters, and leave none behind") {
  const ToyTask task({4, 5, 6});
  const auto model = toy_model(task);
  GradientMeasureOptions options;
  options.examples = 2;
  const auto measured = GradientMeasure(options).measure(*model, task, 1);
  for (const auto& parameter : model->parameters()) CHECK_FALSE(parameter.grad().defined());
  model->eval();
  Forward run;
  const auto batch = task.batch("train", {0, 1}, torch::kCPU);
  (token_loss(*model, batch, 0, run).sum / static_cast<double>(batch.tokens)).backward();
  double squares = 0;
  for (const auto& item : model->named_parameters())
    if (item.key().rfind("decoder.layers.1.", 0) == 0) squares += item.value().grad().square().sum().item<double>();
  CHECK(measured["layers"]["decoder"].size() == 2);
  CHECK(std::abs(measured["layers"]["decoder"][1].get<double>() - std::sqrt(squares)) <
        1e-6 * std::sqrt(squares) + 1e-9);
  const double first = measured["layers"]["encoder"][0], last = measured["layers"]["encoder"][1];
  CHECK(std::abs(measured["last_over_first"]["encoder"].get<double>() - last / first) < 1e-9);
}

TEST_CASE("time is measured for each length, and a length above the model's is refused") {
  const ToyTask task({4, 5});
  const auto model = toy_model(task);
  TimeMeasureOptions options;
  options.lengths = {8, 32};
  options.repeats = 1;
  const auto measured = TimeMeasure(options).measure(*model, task, 1);
  CHECK(measured["seconds"].size() == 2);
  CHECK(measured["longest"].get<double>() > 0);
  CHECK(std::isfinite(measured["exponent"].get<double>()));
  options.lengths = {100000};
  CHECK_THROWS_AS(TimeMeasure(options).measure(*model, task, 1), ShapeError);
}
