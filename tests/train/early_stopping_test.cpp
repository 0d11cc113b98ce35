#include "src/train/early_stopping.h"

#include <cmath>
#include <limits>

#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

EarlyStoppingOptions stopping(int64_t patience, double min_delta = 0, const std::string& metric = "loss") {
  EarlyStoppingOptions options;
  options.patience = patience;
  options.min_delta = min_delta;
  options.metric = metric;
  return options;
}

/// Which of these validations, one a step, are improvements, until it is over: "++-+--".
std::string watch(EarlyStopping stopping, const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size() && !stopping.over(); ++i)
    text += stopping.see(static_cast<int64_t>(i) + 1, {{stopping.metric(), values[i]}}) ? '+' : '-';
  return text;
}

/// A task whose validations say what they are told, or else a number that jumps with every change of the weights.
class Validated : public ToyTask {
 public:
  explicit Validated(std::vector<double> losses = {})
      : ToyTask({3, 5, 9, 4, 7, 12, 6, 6}), losses_(std::move(losses)) {}
  Evaluation evaluate(Model& model, const EvaluateOptions&, const Intervention&) const override {
    double loss = 0;
    if (losses_.empty()) {
      torch::NoGradGuard no_grad;
      for (const auto& parameter : model.parameters()) loss += parameter.to(torch::kFloat64).abs().sum().item<double>();
      loss = std::fmod(1000 * loss, 1.0);
    } else {
      loss = losses_.at(static_cast<std::size_t>(evaluations));
    }
    ++evaluations;
    Evaluation result;
    result.metrics = {{"loss", loss}, {"accuracy", 1 - loss}};
    return result;
  }

 private:
  std::vector<double> losses_;
};

TrainOptions options_of(int64_t steps, int64_t patience, double min_delta = 0) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = 2;
  options.log_every = options.validate_every = 2;
  options.keep_checkpoints = 1;
  options.schedule.choose("constant");
  options.early_stopping = stopping(patience, min_delta);
  return options;
}

bool same_bits(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  for (const auto& item : left)
    if (!torch::equal(item.value(), right[item.key()])) return false;
  return true;
}

/// The weights after `steps` steps of a training without early stopping.
std::shared_ptr<Model> plainly_trained(const Task& task, const ToyTask& shape, int64_t steps) {
  auto model = toy_model(shape, 0.2);
  auto options = options_of(steps, 0);
  options.validate_every = 0;
  Trainer(*model, task, options, 16, 9).run({}, [](const TrainReport&) {});
  return model;
}

}  // namespace

TEST_CASE("an improvement is a change for the better by more than min_delta", "[train]") {
  CHECK(watch(EarlyStopping(stopping(2)), {5, 4, 4, 3.5, 3.6, 3.5, 1}) == "++-+--");
  CHECK(watch(EarlyStopping(stopping(2, 0.5)), {5, 4.5, 4.4, 4.3, 4.2}) == "+-+--");
  CHECK(watch(EarlyStopping(stopping(2, 0.5)), {5, 4.6, 4.5, 1}) == "+--");
  CHECK(watch(EarlyStopping(stopping(3, 0, "accuracy")), {0.1, 0.3, 0.2, 0.3, 0.25}) == "++---");
  CHECK(watch(EarlyStopping(stopping(2)), {NAN, 7, NAN, NAN, 1}) == "-+--");
  CHECK(watch(EarlyStopping(stopping(1)), {1, 1}) == "+-");
}

TEST_CASE("what early stopping has seen survives saving", "[train]") {
  EarlyStopping before(stopping(3));
  CHECK(before.state().at("value").is_null());
  before.see(10, {{"loss", 0.1 + 0.2}, {"accuracy", NAN}});
  before.see(20, {{"loss", 7.0}, {"accuracy", 0.5}});
  before.see(30, {{"loss", 7.0}, {"accuracy", 0.5}});
  EarlyStopping after(stopping(3));
  after.restore(nlohmann::json::parse(before.state().dump()));
  CHECK(after.best_step() == 10);
  CHECK(after.best().at("loss") == 0.1 + 0.2);
  CHECK(std::isnan(after.best().at("accuracy")));
  CHECK_FALSE(after.over());
  CHECK_FALSE(after.see(40, {{"loss", 1.0}}));
  CHECK(after.over());
}

TEST_CASE("a metric that was not measured is told with those that were", "[train]") {
  EarlyStopping watched(stopping(1, 0, "acuracy"));
  CHECK_THROWS_WITH(watched.see(1, {{"loss", 1.0}, {"accuracy", 1.0}}),
                    ContainsSubstring("\"acuracy\"; did you mean \"accuracy\"? (exists: accuracy, loss)"));
}

TEST_CASE("training stops after `patience` validations without improvement and leaves the best model", "[train]") {
  const Validated task({5, 4, 3, 3.5, 3, 9, 1});  // at steps 2, 4, 6 (the best), 8, 10, 12, 14
  for (const bool with_folder : {false, true}) {
    task.evaluations = 0;
    auto model = toy_model(task, 0.2);
    test::Folder folder;
    Trainer trainer(*model, task, options_of(40, 3), 16, 9);
    int64_t reported = 0;
    CHECK(trainer.run(with_folder ? folder.path() : std::filesystem::path(),
                      [&](const TrainReport& report) { reported = report.step; }));
    CHECK(trainer.step() == 12);
    CHECK(reported == 12);
    CHECK(trainer.early_stopping().best_step() == 6);
    CHECK(same_bits(*model, *plainly_trained(task, task, 6)));
    CHECK_FALSE(same_bits(*model, *plainly_trained(task, task, 12)));
    if (!with_folder) continue;
    std::vector<int64_t> steps;
    for (const auto& [step, path] : complete_checkpoints(folder.path())) steps.push_back(step);
    CHECK(steps == std::vector<int64_t>{6, 12});  // the best, and the last of keep_checkpoints 1
  }
}

TEST_CASE("a training that reaches its last step leaves the best model too, and without early stopping the last",
          "[train]") {
  const Validated task({5, 1, 3, 4});
  auto best = toy_model(task, 0.2), last = toy_model(task, 0.2);
  Trainer stopping(*best, task, options_of(8, 100), 16, 9);
  CHECK(stopping.run({}, [](const TrainReport&) {}));
  CHECK(stopping.step() == 8);
  CHECK(same_bits(*best, *plainly_trained(task, task, 4)));
  task.evaluations = 0;
  Trainer plain(*last, task, options_of(8, 0), 16, 9);
  CHECK(plain.run({}, [](const TrainReport&) {}));
  CHECK(same_bits(*last, *plainly_trained(task, task, 8)));
}

TEST_CASE("a training with early stopping that is broken off anywhere ends with the same bits", "[train]") {
  const Validated task;
  const auto train = [&](Model& model, const std::filesystem::path& folder, int64_t stop_after) {
    auto options = options_of(60, 4);
    options.checkpoint_every = 3;
    Trainer trainer(model, task, options, 16, 9);
    trainer.resume(folder);
    trainer.run(folder, [](const TrainReport&) {}, [&] { return trainer.step() == stop_after; });
    return std::pair(trainer.step(), trainer.early_stopping().state());
  };
  auto whole = toy_model(task, 0.2);
  test::Folder of_whole;
  const auto expected = train(*whole, of_whole.path(), -1);
  REQUIRE(expected.first < 60);
  for (int64_t stop = 1; stop <= expected.first; stop += 3) {
    INFO("stopped after step " << stop);
    test::Folder folder;
    auto broken = toy_model(task, 0.2), resumed = toy_model(task, 0.2), again = toy_model(task, 0.2);
    train(*broken, folder.path(), stop);
    CHECK(train(*resumed, folder.path(), -1) == expected);
    CHECK(same_bits(*resumed, *whole));
    CHECK(train(*again, folder.path(), -1) == expected);  // one that is over stays so
    CHECK(same_bits(*again, *whole));
  }
}

TEST_CASE(
    "a kill that loses the last checkpoints goes back to the best of those that are left, and on to the same bits",
    "[train]") {
  const Validated task;
  auto options = options_of(60, 4);
  options.keep_checkpoints = 50;
  auto whole = toy_model(task, 0.2);
  test::Folder of_whole;
  Trainer first(*whole, task, options, 16, 9);
  first.run(of_whole.path(), [](const TrainReport&) {});
  const auto there = complete_checkpoints(of_whole.path());
  REQUIRE(there.size() >= 2);
  for (std::size_t kept = 1; kept < there.size(); ++kept) {
    INFO("checkpoints left: " << kept);
    // What was on the disk some time before: without all that came after an earlier checkpoint.
    test::Folder folder;
    std::filesystem::copy(of_whole.path(), folder.path(), std::filesystem::copy_options::recursive);
    for (const auto& [step, path] : complete_checkpoints(folder.path()))
      if (step > there[kept - 1].first) std::filesystem::remove_all(path);
    auto resumed = toy_model(task, 0.2);
    Trainer second(*resumed, task, options, 16, 9);
    REQUIRE(second.resume(folder.path()));
    CHECK(second.step() == there[kept - 1].first);
    second.run(folder.path(), [](const TrainReport&) {});
    CHECK(same_bits(*resumed, *whole));
    CHECK(second.early_stopping().state() == first.early_stopping().state());
  }
}

TEST_CASE("early stopping without validations, or on what they do not measure, is a mistake of the spec", "[train]") {
  auto options = options_of(10, 2);
  Problems fine;
  options.rules(fine);
  CHECK(fine.found.empty());
  options.validate_every = 0;
  options.early_stopping.metric = "bleu";
  Problems problems;
  options.rules(problems);
  REQUIRE(problems.found.size() == 2);
  CHECK(problems.found[0].field == "early_stopping.patience");
  CHECK(problems.found[1].field == "early_stopping.metric");
  CHECK(problems.found[1].message == "unknown metric \"bleu\" (exists: loss); name it in validate.metrics");
}

}  // namespace headlab
