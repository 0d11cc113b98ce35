#include "src/measure/likeness.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "modules/attention/gate/diversity.h"
#include "modules/attention/project/standard.h"
#include "src/task/frames.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/tasks.h"

using namespace headlab;

namespace {

std::shared_ptr<Task> phones() {
  return make_task(
      R"({"type": "frames", "data": {"type": "phones", "phones": 5, "width": 5, "symbols": {"min": 2, "max": 4}, "frames": {"min": 1, "max": 3},
                      "train": 20, "valid": 12, "test": 12}})");
}

}  // namespace

TEST_CASE("the likeness of heads is a mean over all tokens of a split, as if each text came alone", "[paper-30]") {
  const auto task = phones();
  const auto model = make_model(model_choice("frame_encoder", small_frame_encoder()), task->context());
  for (const auto& on : likeness_places()) {
    LikenessMeasureOptions options;
    options.on = on;
    options.max_tokens = 30;
    const auto measured = LikenessMeasure(options).measure(*model, *task, 1);
    std::map<std::string, double> sums, pair_sums;
    double tokens = 0;
    const torch::NoGradGuard no_grad;
    for (int64_t i = 0; i < 12; ++i) {
      std::map<Site, Tensor> seen;
      LambdaTap tap([&](At at, Site) { return at == place_of_likeness(on); },
                    [&](At, Site site, Tensor value) { return seen[site] = value; });
      Forward run;
      run.taps = {&tap};
      model->hidden(task->batch("valid", {i}, torch::kCPU).inputs, run);
      for (const auto& [site, u] : seen) {
        const auto unit = u / u.square().sum(-1, true).sqrt();
        for (int64_t t = 0; t < u.size(2); ++t)
          for (int64_t h = 0; h < 4; ++h)
            for (int64_t g = 0; g < 4; ++g) {
              if (h == g) continue;
              const auto square = std::pow((unit[0][h][t] * unit[0][g][t]).sum().item<double>(), 2);
              sums[to_string(site)] += square / 12;
              pair_sums[to_string(HeadId{site.stack, site.layer, h})] += square / 3;
            }
      }
      tokens += static_cast<double>(seen.begin()->second.size(2));
    }
    double mean = 0;
    for (const auto& [site, sum] : sums) {
      CHECK(measured["attentions"][site].get<double>() == Approx(sum / tokens).epsilon(1e-4));
      mean += sum / tokens / 2;
    }
    CHECK(measured["likeness"].get<double>() == Approx(mean).epsilon(1e-4));
    REQUIRE(measured["heads"].size() == pair_sums.size());
    for (const auto& [head, sum] : pair_sums)
      CHECK(measured["heads"][head]["likeness"].get<double>() == Approx(sum / tokens).epsilon(1e-4));
  }
}

TEST_CASE("the pull on heads is the cosine of the gradients of their own rows and columns", "[paper-30]") {
  const auto task = phones();
  const auto model = make_model(model_choice("frame_encoder", small_frame_encoder()), task->context());
  HeadGradientsOptions options;
  options.limit = 6;
  options.max_tokens = 20;
  const auto measured = HeadGradientsMeasure(options).measure(*model, *task, 1);
  // All at once, and the heads' slices by hand: 4 heads of width 2, q k v one below the other.
  const auto batch = task->batch("train", {0, 1, 2, 3, 4, 5}, torch::kCPU);
  Forward run;
  torch::nll_loss(model->row_logits(batch.inputs, batch.rows_N, run).log_softmax(-1), batch.targets_N).backward();
  const auto parameters = model->named_parameters();
  double mean = 0, mean_square = 0;
  for (int64_t layer = 0; layer < 2; ++layer) {
    const auto of = [&](const std::string& name) {
      return parameters["encoder.layers." + std::to_string(layer) + ".self_attention." + name].grad();
    };
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < 4; ++h) {
      std::vector<Tensor> parts;
      for (int64_t which = 0; which < 3; ++which) {
        parts.push_back(of("project.weight").narrow(0, 8 * which + 2 * h, 2).flatten());
        parts.push_back(of("project.bias").narrow(0, 8 * which + 2 * h, 2));
      }
      parts.push_back(of("mix.weight").narrow(1, 2 * h, 2).flatten());
      heads.push_back(torch::cat(parts).to(torch::kFloat64));
    }
    double sum = 0, squares = 0;
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t g = 0; g < 4; ++g) {
        if (h == g) continue;
        const auto& a = heads[static_cast<std::size_t>(h)];
        const auto& b = heads[static_cast<std::size_t>(g)];
        const auto cosine = ((a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()).item<double>();
        sum += cosine / 12;
        squares += cosine * cosine / 12;
      }
    const auto& got = measured["attentions"]["enc.self." + std::to_string(layer)];
    CHECK(got["cosine"].get<double>() == Approx(sum).epsilon(1e-3).margin(1e-5));
    CHECK(got["squared"].get<double>() == Approx(squares).epsilon(1e-3));
    mean += sum / 2;
    mean_square += squares / 2;
  }
  CHECK(measured["cosine"].get<double>() == Approx(mean).epsilon(1e-3).margin(1e-5));
  CHECK(measured["squared"].get<double>() == Approx(mean_square).epsilon(1e-3));
}

TEST_CASE("likeness asks for two heads", "[paper-30]") {
  const auto task = phones();
  auto attention = small_attention();
  attention.heads = 1;
  const auto model = make_model(model_choice("frame_encoder", small_frame_encoder(attention)), task->context());
  CHECK_THROWS_AS(LikenessMeasure({}).measure(*model, *task, 1), UsageError);
  CHECK_THROWS_AS(HeadGradientsMeasure({}).measure(*model, *task, 1), UsageError);
}
