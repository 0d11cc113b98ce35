// bfloat16 products and float64: what is computed in which type, and how far results may be apart.
#include <ATen/autocast_mode.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/tensor/torch.h"
#include "src/checkpoint/safetensors.h"
#include "src/decode/translate.h"
#include "src/train/trainer.h"
#include "tests/catch.h"
#include "tests/faults/tiny_files.h"
#include "tests/support/operators.h"
#include "tests/support/toy_task.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

using test::Folder;
using test::TinyFiles;

/// The unit roundoff of bfloat16: 8 significant bits.
constexpr double half_bit = 1.0 / 512;

TrainOptions steps(int64_t count) {
  TrainOptions options;
  options.steps = count;
  options.batch.max_rows = 4;
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

std::shared_ptr<EncoderDecoder> in_bfloat16(std::shared_ptr<EncoderDecoder> model) {
  model->multiply_in(torch::kBFloat16);
  return model;
}

const std::vector<int64_t> lengths{3, 5, 9, 4, 7, 12, 6, 6, 8, 10};

}  // namespace

TEST_CASE(
    "bfloat16 is the type of products alone: heads have it, the residual stream, logits, loss and gradients do not") {
  const ToyTask task(lengths);
  const auto model = in_bfloat16(toy_model(task));
  std::map<At, torch::ScalarType> seen;
  LambdaTap tap([](At at, Site) { return at != At::scores && at != At::weights && at != At::o; },
                [&](At at, Site, Tensor value) {
                  seen[at] = value.scalar_type();
                  return value;
                });
  Forward run;
  run.taps = {&tap};
  const auto batch = task.batch("train", {0, 1, 2}, torch::kCPU);
  const auto ran = operators_of([&] { token_loss(*model, batch, 0.1, run).sum.backward(); });
  for (const auto at : {At::q, At::k, At::v, At::z, At::y}) CHECK(seen.at(at) == torch::kBFloat16);
  for (const auto at : {At::x, At::residual_in, At::residual_mid, At::residual_out, At::logits})
    CHECK(seen.at(at) == torch::kFloat32);
  CHECK(ran.count("aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
  for (const auto& item : model->named_parameters()) {
    INFO(item.key());
    CHECK(item.value().scalar_type() == torch::kFloat32);
    CHECK(item.value().grad().scalar_type() == torch::kFloat32);
    CHECK(finite(item.value().grad()));
  }
  CHECK(!at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("a loss in bfloat16 is that in float32 to the rounding of its products") {
  const ToyTask task(lengths);
  const auto plain = toy_model(task), half = in_bfloat16(toy_model(task));
  const auto batch = task.batch("train", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, torch::kCPU);
  Forward run;
  const auto logits = target_logits(*plain, batch, run).detach(), rounded = target_logits(*half, batch, run).detach();
  // Each product rounds its two inputs and its result, and about twenty follow one another on the way to a logit:
  // errors of independent roundings add as squares, of logits that are sums of 16 terms of size |logit|.
  const auto size = logits.abs().max().item<double>();
  CHECK(difference(rounded, logits) < 3 * std::sqrt(20.0 * 3) * half_bit * size);
  CHECK(difference(rounded, logits) > half_bit * 0.01 * size);  // and it was not float32
  const auto loss = token_loss(*plain, batch, 0.1, run).sum.item<double>() / static_cast<double>(batch.tokens);
  const auto of_half = token_loss(*half, batch, 0.1, run).sum.item<double>() / static_cast<double>(batch.tokens);
  // A mean over tokens whose errors are independent.
  CHECK(std::abs(of_half - loss) <
        3 * std::sqrt(20.0 * 3) * half_bit * size / std::sqrt(static_cast<double>(batch.tokens)));
}

TEST_CASE("a model trains in bfloat16 as in float32, and its weights stay float32") {
  const ToyTask task(lengths);
  const auto plain = toy_model(task), half = in_bfloat16(toy_model(task));
  const auto expected = train(*plain, task, steps(60)), got = train(*half, task, steps(60));
  CHECK(got.back().nll < 0.8 * got.front().nll);
  CHECK(got.back().nll == Catch::Detail::Approx(expected.back().nll).epsilon(0.1));
  for (const auto& item : half->named_parameters()) CHECK(item.value().scalar_type() == torch::kFloat32);
  const auto a = plain->named_parameters(), b = half->named_parameters();
  double apart = 0;
  for (const auto& item : a) apart = std::max(apart, difference(item.value(), b[item.key()]));
  CHECK(apart > 0);
  // Cast weights are not kept over a step: the loss that is reported is that of the weights that are there.
  const auto batch = task.batch("train", {0, 1, 2}, torch::kCPU);
  const auto clone = std::dynamic_pointer_cast<EncoderDecoder>(half->clone());
  const torch::NoGradGuard no_grad;
  Forward run;
  CHECK(clone->multiplies_in() == half->multiplies_in());
  CHECK(torch::equal(target_logits(*clone, batch, run), target_logits(*half, batch, run)));
}

TEST_CASE("resume-resets: a training in bfloat16 that is stopped ends with the same bits", "[cases]") {
  const ToyTask task(lengths);
  const auto model = [&] { return in_bfloat16(toy_model(task, 0.2)); };
  const auto whole = model(), broken = model(), fresh = model();
  const auto expected = train(*whole, task, steps(12));
  const Folder folder;
  train(*broken, task, steps(12), folder.path(), 5);
  const auto rest = train(*fresh, task, steps(12), folder.path());
  const auto a = whole->named_parameters();
  for (const auto& item : fresh->named_parameters()) CHECK(torch::equal(item.value(), a[item.key()]));
  CHECK(rest.back().loss == expected.back().loss);
}

TEST_CASE("half-overflow: masked rows, padding and large numbers are finite in bfloat16 products, on both paths",
          "[cases]") {
  LambdaTap weights([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
  for (const bool instrumented : {false, true}) {
    auto attention = make_attention(small_attention(), small_width);
    auto see = causal();
    see.key_mask_BS = mask_of({5, 0}, 5);  // the second example has no key at all
    auto x = (noise({2, 5, small_width}, "x") * 1000).requires_grad_();
    Forward run;
    if (instrumented) run.taps = {&weights};
    Tensor y;
    {
      const Autocast products(torch::kBFloat16, torch::kCPU);
      y = attention->forward(call_of(x, run, see));
    }
    CHECK(finite(y));
    y.sum().backward();
    CHECK(finite(x.grad()));
    for (const auto& p : attention->parameters()) CHECK(finite(p.grad()));
    CHECK(difference(y[1][0], y[1][4]) == 0);  // the bias of the output alone
  }
}

TEST_CASE("a search in bfloat16 writes what the model in bfloat16 says, cached as uncached") {
  const auto model = in_bfloat16(translator());
  const auto sources = sentences({3, 9, 1, 12}, 11);
  const TextIds ids;
  SearchOptions options;
  options.beam = 1;
  Forward run;
  const auto found = translate_ids(*model, sources, ids, ids, options, 4096, run);
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto source = sources[i];
    source.push_back(ids.eos);
    std::vector<int64_t> target{ids.bos};
    target.insert(target.end(), found[i].front().ids.begin(), found[i].front().ids.end());
    Batch batch;
    batch.source_BS = torch::tensor(source, torch::kLong).unsqueeze(0);
    batch.target_BT = torch::tensor(target, torch::kLong).unsqueeze(0);
    const auto log_p = torch::log_softmax(model->logits(batch, run)[0], -1);
    double sum = 0;
    for (std::size_t t = 0; t + 1 < target.size(); ++t)
      sum += log_p[static_cast<int64_t>(t)][target[t + 1]].item<double>();
    sum += log_p[static_cast<int64_t>(target.size()) - 1][ids.eos].item<double>();
    // Each token's log-probability to the rounding of one product of large logits.
    CHECK(found[i].front().log_probability ==
          Catch::Detail::Approx(sum).margin(half_bit * static_cast<double>(target.size()) *
                                            log_p.abs().max().item<double>()));
  }
}

TEST_CASE("runs in bfloat16 and float64 train, evaluate and export through the program, with weights of their type") {
  const TinyFiles files;
  const auto spec = files.spec("[" + test::train_stage(4) +
                               R"(, {"evaluate": {"metrics": ["loss", "bleu"]}}, {"export": {"compare": 4}}])");
  std::map<std::string, double> loss;
  for (const std::string precision : {"float32", "float64", "bfloat16"}) {
    INFO(precision);
    const auto out = files / precision;
    const auto run = test::run_program(
        {"run", spec, "--out", out.string(), "--threads", "1", "--quiet", "--set", "precision=" + precision});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto folder = test::only_run(out, "tiny");
    const auto results = nlohmann::json::parse(read_file(folder / "results.json"));
    loss[precision] = results["stages"]["evaluate"]["metrics"]["loss"];
    CHECK(results["stages"]["export"]["different"] == 0);
    const auto type = precision == "float64" ? torch::kFloat64 : torch::kFloat32;
    for (const auto& [name, tensor] :
         read_safetensors(folder / "checkpoints" / "train" / "final" / "model.safetensors").tensors)
      CHECK(tensor.scalar_type() == type);
    const auto translated = test::run_program({"translate", folder.string(), "--beam", "2"}, 0, "a b c\n");
    CHECK(translated.code == 0);
    CHECK(std::count(translated.out.begin(), translated.out.end(), '\n') == 1);
  }
  CHECK(loss["float64"] == Catch::Detail::Approx(loss["float32"]).epsilon(1e-4));
  CHECK(loss["float64"] != loss["float32"]);
  CHECK(loss["bfloat16"] == Catch::Detail::Approx(loss["float32"]).epsilon(0.02));
  CHECK(loss["bfloat16"] != loss["float32"]);
}

}  // namespace headlab
