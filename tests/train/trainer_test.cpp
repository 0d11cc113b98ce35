#include "src/train/trainer.h"

#include <cmath>
#include <limits>

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

TrainOptions options_of(int64_t steps, int64_t rows, int64_t accumulate = 1) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = rows;
  options.accumulate = accumulate;
  options.log_every = 1;
  options.schedule.choose("constant");
  return options;
}

std::vector<TrainReport> train(Model& model, const Task& task, const TrainOptions& options,
                               const std::filesystem::path& folder = {}, int64_t stop_after = -1) {
  Trainer trainer(model, task, options, 16, 9);
  if (!folder.empty()) trainer.resume(folder);
  std::vector<TrainReport> reports;
  trainer.run(
      folder, [&](const TrainReport& report) { reports.push_back(report); },
      [&] { return trainer.step() == stop_after; });
  return reports;
}

bool same_bits(const Model& a, const Model& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  for (const auto& item : left)
    if (!torch::equal(item.value(), right[item.key()])) return false;
  return true;
}

}  // namespace

TEST_CASE("mean-of-means: accumulation weighs tokens, not batches", "[cases]") {
  const ToyTask task({3, 97});
  auto one = toy_model(task), two = toy_model(task);
  const auto whole = train(*one, task, options_of(1, 2)), parts = train(*two, task, options_of(1, 1, 2));
  CHECK(parts[0].tokens == 100);
  CHECK(parts[0].loss == Approx(whole[0].loss).epsilon(1e-6));
  CHECK(parts[0].nll == Approx(whole[0].nll).epsilon(1e-6));
  CHECK(parts[0].grad_norm == Approx(whole[0].grad_norm).epsilon(1e-5));
}

TEST_CASE("resume-resets: a training that is stopped and gone on with ends with the same bits", "[cases]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  auto options = options_of(23, 2);
  options.log_every = 4;
  options.schedule.choose("transformer");
  for (const int64_t stop : {1, 5, 22}) {
    auto whole = toy_model(task, 0.2), broken = toy_model(task, 0.2), fresh = toy_model(task, 0.2);
    const auto expected = train(*whole, task, options);
    headlab::test::Folder folder;
    train(*broken, task, options, folder.path(), stop);
    const auto rest = train(*fresh, task, options, folder.path());
    CHECK(same_bits(*whole, *fresh));
    REQUIRE(!rest.empty());
    CHECK(rest.back().loss == expected.back().loss);
    CHECK(rest.back().learning_rate == expected.back().learning_rate);
    CHECK(rest.back().epoch == expected.back().epoch);
  }
}

TEST_CASE("a loss that is not finite stops the training with a message and leaves the checkpoint") {
  const ToyTask task({3, 5});
  auto model = toy_model(task);
  headlab::test::Folder folder;
  auto options = options_of(10, 1);
  options.checkpoint_every = 1;
  Trainer trainer(*model, task, options, 16, 9);
  const auto spoil = [&](const TrainReport& report) {
    if (report.step == 3) {
      torch::NoGradGuard no_grad;
      model->parameters().front().fill_(std::numeric_limits<float>::infinity());
    }
  };
  // Spoiled before the third checkpoint is written, found in the fourth step: the checkpoint of step 2 is what is safe.
  options.keep_checkpoints = 5;
  CHECK_THROWS_WITH(trainer.run(folder.path(), spoil), ContainsSubstring("training stopped at step 4: ") &&
                                                           ContainsSubstring("the last checkpoint is unharmed"));
  CHECK(latest_checkpoint(folder.path()).has_value());
}

TEST_CASE("the paper's schedule rises to its peak at the warm-up and falls with the square root") {
  Choice choice(schedule_catalogue, "transformer");
  const auto schedule = schedules().make(choice, 512, 100000);
  const double scale = std::pow(512.0, -0.5);
  CHECK(schedule->rate(1) == Approx(scale * std::pow(4000.0, -1.5)).epsilon(1e-12));
  CHECK(schedule->rate(4000) == Approx(scale * std::pow(4000.0, -0.5)).epsilon(1e-12));
  CHECK(schedule->rate(16000) == Approx(scale * std::pow(16000.0, -0.5)).epsilon(1e-12));
}

TEST_CASE("linear and cosine schedules end where they say") {
  for (const auto* name : {"linear", "cosine"}) {
    Choice choice(schedule_catalogue, name);
    const auto schedule = schedules().make(choice, 512, 100);
    CHECK(schedule->rate(100) == Approx(0).margin(1e-12));
    CHECK(schedule->rate(50) == Approx(5e-4).epsilon(1e-9));
  }
}

TEST_CASE("a gradient longer than the limit is scaled to it, a shorter one left alone") {
  auto a = torch::zeros({3}).requires_grad_(), b = torch::zeros({1}).requires_grad_();
  a.mutable_grad() = torch::tensor({3.0f, 0.0f, 0.0f});
  b.mutable_grad() = torch::tensor({4.0f});
  const NamedParameters parameters{{"a", a}, {"b", b}};
  CHECK(clip_gradients(parameters, 10).item<double>() == Approx(5));
  CHECK(a.grad()[0].item<double>() == Approx(3));
  CHECK(clip_gradients(parameters, 1).item<double>() == Approx(5));
  CHECK(a.grad()[0].item<double>() == Approx(0.6).epsilon(1e-5));
  CHECK(b.grad()[0].item<double>() == Approx(0.8).epsilon(1e-5));
}

TEST_CASE("tied parameters are trained once") {
  const ToyTask task({3});
  auto model = toy_model(task);
  int tables = 0;
  for (const auto& [name, parameter] : trained_parameters(*model)) tables += parameter.size(0) == 20;
  CHECK(tables == 1);
}

TEST_CASE("a model learns the toy task") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  auto model = toy_model(task);
  auto options = options_of(150, 10);
  const auto reports = train(*model, task, options);
  CHECK(reports.back().nll < 0.5 * reports.front().nll);
}
