// What a GPU must give; left out, by name, where there is none (tests/support/skip.h). The entries one by one are in
// tests/modules/conformance_test.cpp.
#include <torch/script.h>

#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/tensor/torch.h"
#include "src/export/torchscript.h"
#include "src/run/saved_model.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/faults/tiny_files.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"
#include "tests/support/toy_task.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

using test::has_gpu;
using test::run_program;
using test::skipped;

const torch::Device gpu(torch::kCUDA, 0);

ExportOptions some_sentences() {
  ExportOptions options;
  options.sentences = sentences({4, 9}, 7);
  return options;
}

}  // namespace

TEST_CASE("device-frozen: a file exported on a GPU runs on the CPU, and one exported on the CPU on a GPU",
          "[cases][cuda]") {
  if (skipped(!has_gpu(), "no GPU")) return;
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto here = translator();
  const auto there = std::dynamic_pointer_cast<EncoderDecoder>(here->clone(gpu));
  const auto source = random_ids({3, 11}, translator_vocabulary, "source"),
             target = random_ids({3, 7}, translator_vocabulary, "target");
  const auto mask = mask_of({11, 4, 8}, 11);
  const auto expected = logits_of(*here, {source, mask, target, {}});
  for (const auto& [name, model] : {std::pair("of the GPU", there), std::pair("of the CPU", here)}) {
    const auto path = scratch / "model.pt";
    export_torchscript(*model, path, some_sentences());
    for (const auto device : {torch::Device(torch::kCPU), gpu}) {
      INFO(name << ", loaded on " << device.str());
      auto file = torch::jit::load(path.string(), device);
      const auto full = file.get_method("full")({source.to(device), mask.to(device), target.to(device)}).toTensor();
      CHECK(full.device().type() == device.type());
      CHECK(difference(full.cpu(), expected) < 1e-3);
      const auto texts = file.get_method("translate_ids")({source.to(device)}).toTensor();
      CHECK(texts.device().type() == device.type());
    }
    auto moved = torch::jit::load(path.string(), torch::kCPU);
    moved.to(gpu);
    CHECK(difference(moved.get_method("full")({source.to(gpu), mask.to(gpu), target.to(gpu)}).toTensor().cpu(),
                     expected) < 1e-3);
  }
}

TEST_CASE(
    "a model trains on a GPU as on the CPU, in float32, float64 and bfloat16, and its checkpoint goes on on the CPU",
    "[cuda]") {
  if (skipped(!has_gpu(), "no GPU")) return;
  const ToyTask task({3, 5, 9, 4, 7, 12, 6, 6, 8, 10});
  for (const std::string precision : {"float32", "float64", "bfloat16"}) {
    INFO(precision);
    const DefaultDtype type(precision == "float64" ? torch::kFloat64 : torch::kFloat32);
    TrainOptions options;
    options.steps = 30;
    options.batch.max_rows = 4;
    options.log_every = 1;
    options.schedule.choose("constant");
    const auto train = [&](torch::Device device, const std::filesystem::path& folder, int64_t stop_after) {
      const auto model = toy_model(task);
      if (precision == "bfloat16") model->multiply_in(torch::kBFloat16);
      model->to(device);
      Trainer trainer(*model, task, options, 16, 9);
      trainer.resume(folder);
      double loss = 0;
      trainer.run(
          folder, [&](const TrainReport& report) { loss = report.nll; }, [&] { return trainer.step() == stop_after; });
      return loss;
    };
    const test::Folder here, there;
    const auto expected = train(torch::kCPU, here.path(), -1);
    train(gpu, there.path(), 15);
    const auto got = train(torch::kCPU, there.path(), -1);
    CHECK(got == Catch::Detail::Approx(expected).epsilon(precision == "bfloat16" ? 0.1 : 0.01));
  }
}

namespace {

/// A run of every stage on `device`, whose model is then used on the CPU and there.
void check_run_on(const std::string& device, const std::string& precision) {
  INFO(device << ", " << precision);
  const test::TinyFiles files;
  const auto spec = files.spec("[" + test::train_stage(30) +
                               R"(, {"evaluate": {"name": "full", "metrics": ["loss", "bleu", "accuracy"]}},
      "score", {"ablate": {"metric": "loss"}}, {"prune": {"scores": "score", "select": {"fraction": 0.5}}},
      {"train": {"name": "more", "steps": 10, "batch": {"max_tokens": 200}}}, {"evaluate": {"name": "pruned", "metrics": ["loss"]}},
      {"export": {"compare": 8}}])");
  const auto run = run_program(
      {"run", spec, "--out", files.out(), "--device", device, "--quiet", "--set", "precision=" + precision});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto results = nlohmann::json::parse(read_file(files.run() / "results.json"));
  CHECK(results["stages"]["export"]["different"] == 0);
  const auto opened = open_run(files.run(), "more", "cpu", true);
  EvaluateOptions options;
  options.metrics = {"loss"};
  const double loss = results["stages"]["pruned"]["metrics"]["loss"];
  CHECK(opened.task->evaluate(*opened.model, options, {}).metrics.at("loss") ==
        Catch::Detail::Approx(loss).epsilon(precision == "bfloat16" ? 0.02 : 1e-3));
  for (const auto& where : {std::string("cpu"), device}) {
    const auto translated = run_program({"translate", files.run().string(), "--device", where}, 0, "a b c\nd e\n");
    CHECK(translated.code == 0);
    CHECK(std::count(translated.out.begin(), translated.out.end(), '\n') == 2);
  }
}

}  // namespace

TEST_CASE("a run of every stage in bfloat16 ends well, and its model translates") { check_run_on("cpu", "bfloat16"); }

TEST_CASE("a run of every stage on a GPU ends well, and its model translates on the CPU", "[cuda]") {
  if (skipped(!has_gpu(), "no GPU")) return;
  check_run_on("cuda", "float32");
  check_run_on("cuda", "bfloat16");
}

TEST_CASE("the quick start runs on a GPU and its claims hold", "[cuda][long]") {
  if (skipped(!has_gpu(), "no GPU")) return;
  const test::Folder folder;
  const auto run = run_program({"run", test::in_source("experiments/quickstart.json"), "--out",
                                (folder.path() / "runs").string(), "--device", "cuda"});
  INFO(run.out << run.err);
  CHECK(run.code == 0);
}

TEST_CASE("a device that is not there is refused by name, before anything is trained") {
  const test::TinyFiles files;
  const auto spec = files.spec("[" + test::train_stage(1) + "]");
  const auto wrong = run_program({"run", spec, "--out", files.out(), "--device", "gpu"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err == "device: expected cpu, cuda or cuda:N, got \"gpu\"\n");
  if (has_gpu()) return;
  const auto none = run_program({"run", spec, "--out", files.out(), "--device", "cuda"});
  CHECK(none.code == 2);
  CHECK(none.err == "device: \"cuda\" is not available: this LibTorch or machine has no CUDA; use cpu\n");
  CHECK(!std::filesystem::exists(files.out()));
}

}  // namespace headlab
