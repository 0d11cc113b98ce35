// Modules that learn from what passes saw: once an optimiser step, whatever its batches, and exactly after a resume.
#include "modules/model/updates.h"

#include <set>

#include "modules/attention/gate/adaptive_windows.h"
#include "src/checkpoint/checkpoint.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

using namespace headlab;

namespace {

std::shared_ptr<EncoderDecoder> adaptive_model(const ToyTask& task, const std::string& controller_grad) {
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.dropout = 0.2;
  options.encoder.layers = options.decoder.layers = 2;
  Choice gate(gate_catalogue, "adaptive_windows");
  auto& its = gate.as<AdaptiveWindowsOptions>();
  its.set = {1, 2, 4, 8};
  its.interval = 3;
  its.warmup = 6;
  its.ema = 0.5;
  its.controller_grad = controller_grad;
  for (auto* attention : {&options.encoder.attention, &options.decoder.attention}) {
    attention->heads = 4;
    attention->gates.items = {gate};
  }
  options.decoder.cross_attention.heads = 4;
  auto model = std::make_shared<EncoderDecoder>(options, task.context());
  initialise(*model, 5);
  return model;
}

TrainOptions options_of(int64_t steps) {
  TrainOptions options;
  options.steps = steps;
  options.batch.max_rows = 1;
  options.accumulate = 2;
  options.log_every = 1;
  options.schedule.choose("constant");
  return options;
}

/// Trains until `stop_after` steps (-1: to the end), going on from what `folder` holds; the windows after each step.
std::vector<std::vector<int64_t>> train(Model& model, const Task& task, const std::filesystem::path& folder,
                                        int64_t stop_after = -1) {
  Trainer trainer(model, task, options_of(24), 16, 9);
  if (!folder.empty()) trainer.resume(folder);
  std::vector<std::vector<int64_t>> windows;
  trainer.run(
      folder,
      [&](const TrainReport&) {
        auto& now = windows.emplace_back();
        for (const auto& item : model.named_buffers())
          if (item.key().ends_with(".window"))
            for (int64_t h = 0; h < item.value().numel(); ++h) now.push_back(item.value()[h].item<int64_t>());
      },
      [&] { return trainer.step() == stop_after; });
  return windows;
}

}  // namespace

TEST_CASE("a training whose windows adapt ends with the same bits after it was broken off anywhere", "[train]") {
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  for (const auto* grad : {"none", "ste"}) {
    const auto whole = adaptive_model(task, grad);
    const auto expected = train(*whole, task, {});
    REQUIRE(expected.size() == 24);
    // They did adapt: none through the warm-up, then some, and not the same for ever.
    CHECK(std::set<int64_t>(expected[4].begin(), expected[4].end()) == std::set<int64_t>{0});
    CHECK(std::count(expected[5].begin(), expected[5].end(), 0) == 0);
    CHECK(std::set<std::vector<int64_t>>(expected.begin() + 5, expected.end()).size() > 1);
    for (std::size_t step = 6; step < 24; ++step)
      if ((step + 1) % 3 != 0) CHECK(expected[step] == expected[step - 1]);
    for (const int64_t stop : {1, 5, 8, 20}) {
      INFO(grad << ", broken off after step " << stop);
      headlab::test::Folder folder;
      auto broken = adaptive_model(task, grad), resumed = adaptive_model(task, grad);
      train(*broken, task, folder.path(), stop);
      const auto rest = train(*resumed, task, folder.path());
      CHECK(rest == std::vector<std::vector<int64_t>>(expected.begin() + stop, expected.end()));
      const auto mine = named_tensors(*whole), its = named_tensors(*resumed);
      REQUIRE(mine.size() == its.size());
      for (const auto& [name, tensor] : mine) {
        INFO(name);
        CHECK(torch::equal(its.at(name), tensor));
      }
    }
  }
}

TEST_CASE("an optimiser step of two batches is one update, with the sums of both", "[train]") {
  const ToyTask task({6, 6});
  auto two = adaptive_model(task, "none"), one = adaptive_model(task, "none");
  two->eval();
  one->eval();
  const auto measured = [&](Model& model, std::vector<std::vector<int64_t>> batches) {
    for (int64_t step = 0; step < 2; ++step) update_modules(model, {});
    model.train();
    std::map<std::string, Tensor> stats;
    for (const auto& examples : batches) {
      Forward run;
      torch::manual_seed(3);
      model.logits(task.batch("train", examples, torch::kCPU).inputs, run);
      CHECK(run.stats.size() == 4);
      add_stats(stats, run.stats);
    }
    update_modules(model, stats);
    return model.named_buffers();
  };
  const auto sums = measured(*two, {{0}, {0}}), once = measured(*one, {{0}});
  for (const auto* stack : {"encoder", "decoder"}) {
    const auto gate = std::string(stack) + ".layers.1.self_attention.gate0.";
    CHECK(sums[gate + "steps"][0].item<int64_t>() == 3);
    CHECK(sums[gate + "steps"][1].item<int64_t>() == 1);
    // The same text twice has the features of once.
    CHECK(difference(sums[gate + "feature"], once[gate + "feature"]) < 1e-12);
    CHECK(once[gate + "feature"].min().item<double>() > 0);
  }
}
