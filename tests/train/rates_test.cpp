#include "src/train/rates.h"

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/train/parameter_names.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

RateOptions rate(double factor, std::vector<std::string> parameters, std::vector<std::string> except = {}) {
  RateOptions options;
  options.parameters = std::move(parameters);
  options.except = std::move(except);
  options.factor = factor;
  return options;
}

TrainOptions options_of(int64_t steps, std::vector<RateOptions> rates) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = 2;
  options.log_every = 1;
  options.clip = 0;
  options.schedule.choose("constant");
  options.rates = std::move(rates);
  return options;
}

TrainReport train(Model& model, const Task& task, const TrainOptions& options, const std::filesystem::path& folder = {},
                  int64_t stop_after = -1) {
  Trainer trainer(model, task, options, 16, 9);
  if (!folder.empty()) trainer.resume(folder);
  TrainReport last;
  trainer.run(folder, [&](const TrainReport& report) { last = report; }, [&] { return trainer.step() == stop_after; });
  return last;
}

/// How far each parameter is from where it began.
std::map<std::string, double> moved(const Model& model, const Model& before) {
  std::map<std::string, double> distance;
  const auto old = before.named_parameters();
  for (const auto& item : model.named_parameters())
    distance[item.key()] = (item.value() - old[item.key()]).norm().item<double>();
  return distance;
}

}  // namespace

TEST_CASE("a parameter's rate is the schedule's times its factor, and the last entry that chooses it counts",
          "[train]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  auto plain = toy_model(task), scaled = toy_model(task), before = toy_model(task);
  auto options = options_of(1, {});
  options.optimizer.choose("sgd");
  train(*plain, task, options);
  options.rates = {rate(10, {"encoder"}), rate(0.5, {"encoder.layers.1", "decoder"}, {"bias"})};
  train(*scaled, task, options);
  const auto one = moved(*plain, *before), other = moved(*scaled, *before);
  int64_t tens = 0, halves = 0, ones = 0;
  for (const auto& [name, distance] : one) {
    CAPTURE(name);
    const bool half = name_matches("encoder.layers.1", name) || name_matches("decoder", name);
    const double factor = half && !name_matches("bias", name) ? 0.5 : name_matches("encoder", name) ? 10 : 1;
    CHECK(other.at(name) == Catch::Detail::Approx(factor * distance).epsilon(1e-9).margin(1e-15));
    (factor == 10 ? tens : factor == 1 ? ones : halves) += distance > 0;
  }
  CHECK(tens > 0);
  CHECK(halves > 0);
  CHECK(ones > 0);
}

TEST_CASE("a parameter with the factor 0 stays to the bit, in no norm and under no decay, and learns again afterwards",
          "[train]") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task), before = toy_model(task);
  auto options = options_of(3, {rate(0, {}), rate(1, {"decoder.layers.0.cross_attention"})});
  Choice decay(penalty_catalogue, "decay");
  decay.as<PenaltyOptions>().coefficient = 0.1;
  options.penalties.items = {decay};
  const auto report = train(*model, task, options);
  double trained = 0;
  for (const auto& [name, distance] : moved(*model, *before)) {
    CAPTURE(name);
    if (name_matches("decoder.layers.0.cross_attention", name)) {
      trained += distance;
    } else {
      CHECK(distance == 0);
    }
  }
  CHECK(trained > 0);
  for (const auto& parameter : model->parameters()) CHECK(parameter.requires_grad());
  // The norm is that of the gradients of what is trained.
  auto all = toy_model(task);
  CHECK(report.grad_norm < train(*all, task, options_of(3, {})).grad_norm);
}

TEST_CASE("factors of 1 change no bit, and a training with rates resumes to the same bits", "[train]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  auto plain = toy_model(task, 0.2), ones = toy_model(task, 0.2);
  train(*plain, task, options_of(7, {}));
  train(*ones, task, options_of(7, {rate(1, {"encoder"})}));
  const auto same = [](const Model& a, const Model& b) {
    const auto distance = moved(a, b);
    return std::all_of(distance.begin(), distance.end(), [](const auto& item) { return item.second == 0; });
  };
  CHECK(same(*plain, *ones));
  const auto options = options_of(9, {rate(3, {"encoder"}), rate(0, {"feed_forward"})});
  auto whole = toy_model(task, 0.2), broken = toy_model(task, 0.2), rest = toy_model(task, 0.2);
  train(*whole, task, options);
  CHECK_FALSE(same(*whole, *plain));
  const test::Folder folder;
  train(*broken, task, options, folder.path(), 4);
  train(*rest, task, options, folder.path());
  CHECK(same(*whole, *rest));
}

TEST_CASE("rates that choose nothing, or leave nothing to train, are told", "[train]") {
  const ToyTask task({5});
  auto model = toy_model(task);
  CHECK_THROWS_WITH(Trainer(*model, task, options_of(1, {rate(1, {"encoder"}), rate(2, {"gates"})}), 16, 9),
                    ContainsSubstring("rates[1].parameters: no parameter of the model has \"gates\""));
  CHECK_THROWS_WITH(Trainer(*model, task, options_of(1, {rate(0, {})}), 16, 9),
                    "rates: expected a parameter that is trained, but all of them have the factor 0");
}

}  // namespace headlab
