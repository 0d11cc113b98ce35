#include "src/heads/scorer.h"

#include <cmath>

#include "src/ablate/ablate.h"
#include "src/heads/scale.h"
#include "tests/catch.h"
#include "tests/support/toy_task.h"

using namespace headlab;
using Catch::Detail::Approx;

namespace {

double loss_with(Model& model, const Task& task, HeadId head, double value) {
  auto scale = model.ones();
  scale[head.stack].index_put_({head.layer, head.head}, value);
  EvaluateOptions options;
  const auto totals = token_totals(model, task, options, scale);
  return totals.nll;
}

GradientScorer gradient(const std::string& absolute, const std::string& normalise) {
  GradientScorerOptions options;
  options.absolute = absolute;
  options.normalise = normalise;
  return GradientScorer(options);
}

}  // namespace

TEST_CASE("the gradient of a head's scale equals finite differences of the loss") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  const auto scores = gradient("batch", "none").score(*model, task, 0);
  REQUIRE(scores.heads.size() == 24);
  constexpr double h = 1e-5;
  for (const auto& [head, score] : scores.heads) {
    const auto slope = (loss_with(*model, task, head, 1 + h) - loss_with(*model, task, head, 1 - h)) / (2 * h);
    CHECK(score == Approx(std::abs(slope)).epsilon(1e-6).margin(1e-9));
  }
}

TEST_CASE("scores by example are at least those by batch, and layer-normalised ones have unit norm") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  const auto by_batch = gradient("batch", "none").score(*model, task, 0), by_example = gradient("example", "none").score(*model, task, 0);
  for (const auto& [head, score] : by_batch.heads) CHECK(3 * by_example.heads.at(head) >= score * (1 - 1e-9));
  std::map<Site, double> norm;
  for (const auto& [head, score] : gradient("example", "layer").score(*model, task, 0).heads) norm[head.site()] += score * score;
  CHECK(norm.size() == 6);
  for (const auto& [site, square] : norm) CHECK(square == Approx(1));
}

TEST_CASE("score-twice: scoring twice gives the same, leaves no gradient and no mode behind, and works on a pruned model", "[cases]") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  model->train();
  const auto first = gradient("example", "layer").score(*model, task, 0);
  CHECK((gradient("example", "layer").score(*model, task, 0).heads == first.heads));
  CHECK(model->is_training());
  for (const auto& parameter : model->parameters()) CHECK(!parameter.grad().defined());
  model->keep(without(model->heads(), parse_heads({"enc.self.0.0", "enc.self.1.0", "enc.self.1.1", "enc.self.1.2", "enc.self.1.3"})));
  const auto pruned = gradient("example", "layer").score(*model, task, 0);
  CHECK(pruned.heads.size() == 19);
  for (const auto& [head, score] : pruned.heads) CHECK(std::isfinite(score));
}

TEST_CASE("ablation masks each head, the named sets and the random ones, and changes nothing") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  AblateOptions options;
  options.metric = "loss";
  options.evaluate.metrics = {"loss"};
  NamedSet set;
  set.name = "pair";
  set.heads = {"enc.self.0.0", "dec.cross.1.3"};
  options.sets = {set};
  options.random.sets = 3;
  options.random.size = 5;
  const auto before = model->parameters().front().clone();
  const auto result = ablate(*model, task, options, 4);
  REQUIRE(result.each.size() == 24);
  REQUIRE(result.sets.size() == 4);
  EvaluateOptions evaluation;
  for (const auto& row : result.each)
    CHECK(row.metrics.at("loss") == task.evaluate(*model, evaluation, mask_scale(*model, row.heads)).metrics.at("loss"));
  CHECK(result.baseline.at("loss") == task.evaluate(*model, evaluation, {}).metrics.at("loss"));
  CHECK(result.sets[0].metrics.at("loss") ==
        task.evaluate(*model, evaluation, mask_scale(*model, parse_heads(set.heads))).metrics.at("loss"));
  CHECK(result.sets[1].heads.size() == 5);
  CHECK((result.sets[1].heads != result.sets[2].heads));
  CHECK(torch::equal(before, model->parameters().front()));
}

TEST_CASE("ablating a head that does not exist is an error before anything is measured") {
  const ToyTask task({5});
  auto model = toy_model(task);
  AblateOptions options;
  options.metric = "loss";
  NamedSet set;
  set.name = "wrong";
  set.heads = {"enc.self.9.1"};
  options.sets = {set};
  CHECK_THROWS_WITH(ablate(*model, task, options, 4), ContainsSubstring("enc.self.9.1: the encoder has layers 0 to 1"));
  CHECK(task.evaluations == 0);
}
