#include "src/train/average.h"

#include "modules/tensor/torch.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

TensorMap weights(const std::string& name, torch::ScalarType type = torch::kFloat32) {
  return {{"a.weight", noise({40, 30}, name + "a").to(type)},
          {"b.weight", (noise({50}, name + "b") * 1e-3).to(type)},
          {"b.calls", torch::full({2}, static_cast<int64_t>(name.size()), torch::kLong)}};
}

}  // namespace

TEST_CASE("the average of equal weights is those weights, bit for bit", "[train]") {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kHalf}) {
    const DefaultDtype in_double(torch::kFloat64);
    const auto equal = weights("x", type);
    WeightAverage average;
    for (int i = 0; i < 7; ++i) average.add(equal, "test");
    CHECK(average.count() == 7);
    const auto mean = average.mean();
    REQUIRE(mean.size() == equal.size());
    for (const auto& [name, weight] : equal) {
      CHECK(mean.at(name).scalar_type() == weight.scalar_type());
      CHECK(torch::equal(mean.at(name), weight));
    }
  }
}

TEST_CASE("the average of several weights is their mean, number by number", "[train]") {
  std::vector<TensorMap> all{weights("first"), weights("second"), weights("a third")};
  for (const std::size_t count : {2, 3}) {
    WeightAverage average;
    for (std::size_t i = 0; i < count; ++i) average.add(all[i], "test");
    const auto mean = average.mean();
    for (const char* name : {"a.weight", "b.weight"}) {
      const auto got = mean.at(name).flatten();
      for (int64_t k = 0; k < got.numel(); ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += all[i].at(name).flatten()[k].item<double>();
        // In float64 the mean is off by a few 1e-16; then it is rounded to float32 once.
        CHECK(got[k].item<double>() == Approx(sum / static_cast<double>(count)).epsilon(6.1e-8).margin(1e-12));
      }
    }
    CHECK(torch::equal(mean.at("b.calls"), all[count - 1].at("b.calls")));  // counted, not averaged
  }
  const auto before = all[0].at("a.weight").clone();
  WeightAverage average;
  average.add(all[0], "test");
  average.add(all[1], "test");
  CHECK(torch::equal(all[0].at("a.weight"), before));  // what is averaged stays
}

TEST_CASE("weights of another model are not averaged", "[train]") {
  WeightAverage average;
  average.add(weights("x"), "first");
  auto wrong = weights("x");
  wrong["b.weight"] = torch::zeros({49});
  CHECK_THROWS_WITH(average.add(wrong, "step-2"), ContainsSubstring("step-2: b.weight: expected") &&
                                                      ContainsSubstring("[50], got") && ContainsSubstring("[49]"));
  wrong = weights("x");
  wrong.erase("a.weight");
  CHECK_THROWS_WITH(average.add(wrong, "step-2"), ContainsSubstring("step-2: no a.weight"));
  wrong = weights("x");
  wrong["c"] = torch::zeros({1});
  CHECK_THROWS_WITH(average.add(wrong, "step-2"), ContainsSubstring("step-2: c is not in the checkpoints before it"));
}

TEST_CASE("the last checkpoints of a training are averaged, and tied weights stay tied", "[train]") {
  const ToyTask task({3, 5, 9, 4, 7, 12});
  auto model = toy_model(task);
  TrainOptions options;
  options.steps = 12;
  options.batch.max_rows = 2;
  options.log_every = 1;
  options.schedule.choose("constant");
  options.checkpoint_every = 3;
  options.keep_checkpoints = 4;
  test::Folder folder;
  std::map<int64_t, TensorMap> at;
  Trainer trainer(*model, task, options, 16, 9);
  trainer.run(folder.path(), [&](const TrainReport& report) {
    for (const auto& item : model->named_parameters()) at[report.step][item.key()] = item.value().detach().clone();
  });
  const auto averaged = average_checkpoints(folder.path(), 3);
  CHECK(averaged.steps == std::vector<int64_t>{6, 9, 12});
  auto mean = toy_model(task);
  load_tensors(*mean, averaged.model, "average");
  for (const auto& item : mean->named_parameters()) {
    INFO(item.key());
    const auto& name = item.key();
    const auto expected =
        (at[6][name].to(torch::kFloat64) + at[9][name].to(torch::kFloat64) + at[12][name].to(torch::kFloat64)) / 3;
    CHECK(difference(item.value().detach(), expected) < 1e-7);
  }
  CHECK(trained_parameters(*mean).size() == trained_parameters(*model).size());
  const auto batch = task.batch("valid", {0, 1}, torch::kCPU);
  Forward run;
  CHECK(finite(mean->logits(batch.inputs, run)));
  CHECK_THROWS_WITH(average_checkpoints(folder.path(), 5),
                    ContainsSubstring("expected at least 5 checkpoints to average, got 4") &&
                        ContainsSubstring("its keep_checkpoints to 5 or more"));
}

}  // namespace headlab
