// Scores by the loss and its gradient, and ablation.
#include <algorithm>
#include <cmath>

#include "src/ablate/ablate.h"
#include "src/heads/scale.h"
#include "src/heads/score/gradient.h"
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
  const auto by_batch = gradient("batch", "none").score(*model, task, 0),
             by_example = gradient("example", "none").score(*model, task, 0);
  for (const auto& [head, score] : by_batch.heads) CHECK(3 * by_example.heads.at(head) >= score * (1 - 1e-9));
  std::map<Site, double> norm;
  for (const auto& [head, score] : gradient("example", "layer").score(*model, task, 0).heads)
    norm[head.site()] += score * score;
  CHECK(norm.size() == 6);
  for (const auto& [site, square] : norm) CHECK(square == Approx(1));
}

TEST_CASE(
    "score-twice: scoring twice gives the same, leaves no gradient and no mode behind, and works on a pruned model",
    "[cases]") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  model->train();
  const auto first = gradient("example", "layer").score(*model, task, 0);
  CHECK((gradient("example", "layer").score(*model, task, 0).heads == first.heads));
  CHECK(model->is_training());
  for (const auto& parameter : model->parameters()) CHECK(!parameter.grad().defined());
  model->keep(without(model->heads(),
                      parse_heads({"enc.self.0.0", "enc.self.1.0", "enc.self.1.1", "enc.self.1.2", "enc.self.1.3"})));
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
    CHECK(row.metrics.at("loss") ==
          task.evaluate(*model, evaluation, mask_scale(*model, row.heads)).metrics.at("loss"));
  CHECK(result.baseline.at("loss") == task.evaluate(*model, evaluation, {}).metrics.at("loss"));
  CHECK(result.sets[0].metrics.at("loss") ==
        task.evaluate(*model, evaluation, mask_scale(*model, parse_heads(set.heads))).metrics.at("loss"));
  CHECK(result.sets[1].heads.size() == 5);
  CHECK((result.sets[1].heads != result.sets[2].heads));
  CHECK(torch::equal(before, model->parameters().front()));
}

TEST_CASE("random sets like a set have as many heads of each layer, those of sets and seeds differ") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  const auto chosen =
      parse_heads({"enc.self.0.0", "enc.self.0.3", "enc.self.1.2", "dec.cross.1.0", "dec.cross.1.1", "dec.cross.1.3"});
  const auto sets = sets_like(model->heads(), chosen, 20, 4);
  REQUIRE(sets.size() == 20);
  std::set<std::vector<std::string>> different;
  for (const auto& set : sets) {
    std::map<Site, std::set<int64_t>> of_layer;
    for (const auto& head : parse_heads(set.heads)) of_layer[{head.stack, head.layer}].insert(head.head);
    REQUIRE(of_layer.size() == 3);
    CHECK(of_layer.at({Stack::enc_self, 0}).size() == 2);
    CHECK(of_layer.at({Stack::enc_self, 1}).size() == 1);
    CHECK(of_layer.at({Stack::dec_cross, 1}).size() == 3);
    different.insert(set.heads);
  }
  CHECK(different.size() > 10);
  CHECK(sets_like(model->heads(), chosen, 20, 4)[7].heads == sets[7].heads);
  CHECK(sets_like(model->heads(), chosen, 1, 5)[0].heads != sets[0].heads);
  CHECK(sets_like(model->heads(), {}, 2, 4)[1].heads.empty());
  model->keep(without(model->heads(), parse_heads({"enc.self.1.0", "dec.cross.1.0", "dec.cross.1.1"})));
  CHECK_THROWS_WITH(sets_like(model->heads(), chosen, 1, 4),
                    "ablate.random.like: expected a model of which dec.cross.1 has 3 heads, got 2");
}

TEST_CASE("mean-ablation puts the mean output over tokens in a head's place, by hand") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  model->eval();
  struct Outputs : Tap {
    Tensor z;
    bool wants(At at, Site site) const override { return at == At::z && site == Site{Stack::dec_cross, 1}; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override { return z = value; }
  } outputs;
  struct Fixed : Tap {
    Tensor mean;
    bool wants(At at, Site site) const override { return at == At::z && site == Site{Stack::dec_cross, 1}; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override {
      auto changed = value.clone();
      changed.select(1, 2).copy_(mean.expand_as(changed.select(1, 2)));
      return changed;
    }
  } fixed;
  const torch::NoGradGuard no_grad;
  const auto batch = task.batch("train", {0, 1, 2}, torch::kCPU);
  Forward run;
  run.taps = {&outputs};
  model->hidden(batch.inputs, run);
  const auto z = outputs.z.select(1, 2);  // [3,7,K], the first text 5 long and the last 6
  fixed.mean = torch::cat({z[0].narrow(0, 0, 5), z[1], z[2].narrow(0, 0, 6)}).mean(0);

  AblateOptions options;
  options.metric = "loss";
  options.replace.with = "mean";
  const auto result = ablate(*model, task, options, 4);
  Intervention by_hand;
  by_hand.taps = {&fixed};
  const auto expected = task.evaluate(*model, {}, by_hand).metrics.at("loss");
  const auto row =
      std::find_if(result.each.begin(), result.each.end(), [](const auto& r) { return r.name == "dec.cross.1.2"; });
  CHECK(row->metrics.at("loss") == Approx(expected).epsilon(1e-12));
  CHECK(std::abs(expected - result.baseline.at("loss")) > 1e-6);
  CHECK(result.baseline.at("loss") == task.evaluate(*model, {}, {}).metrics.at("loss"));
}

TEST_CASE("resampled outputs are the head's own at other tokens, the same for the same seed") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  model->eval();
  struct Seen : Tap {
    std::vector<Tensor> z;
    bool wants(At at, Site site) const override { return at == At::z && site == Site{Stack::enc_self, 0}; }
    Tensor see(At, Site, Tensor value, const AttentionCall*) override {
      z.push_back(value);
      return value;
    }
  } before, after;
  const torch::NoGradGuard no_grad;
  ReplacementOptions options;
  options.with = "resample";
  Replacement replacement(options, *model, task, 3);
  const auto batch = task.batch("train", {0, 1, 2}, torch::kCPU);
  const auto pass = [&](Seen& seen, bool replaced) {
    Forward run;
    if (replaced) replacement.without(parse_heads({"enc.self.0.1"})).enter(run);
    run.taps.push_back(&seen);
    return model->hidden(batch.inputs, run);
  };
  pass(before, false);
  const auto once = pass(after, true), twice = pass(after, true);
  CHECK(torch::equal(once, twice));
  const auto own = before.z[0], made = after.z[0];
  for (const auto head : {0, 2, 3}) CHECK(torch::equal(own.select(1, head), made.select(1, head)));
  int64_t others = 0;
  const std::vector<int64_t> lengths{5, 7, 6};
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t t = 0; t < 7; ++t) {
      bool found = false;  // among the outputs at real tokens
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t u = 0; u < lengths[static_cast<std::size_t>(c)]; ++u)
          found = found || torch::allclose(made[b][1][t], own[c][1][u], 1e-12, 1e-14);
      CHECK(found);
      others += !torch::equal(made[b][1][t], own[b][1][t]);
    }
  CHECK(others > 15);  // of 21 draws of 18 tokens about one is a token's own
}

TEST_CASE("heads that are masked already are so in the baseline and in every row, and are not ablated again") {
  const ToyTask task({5, 7, 6});
  auto model = toy_model(task);
  AblateOptions options;
  options.metric = "loss";
  const auto masked = parse_heads({"enc.self.0.1", "dec.cross.1.3"});
  for (const auto* with : {"zero", "mean"}) {
    options.replace.with = with;
    const auto result = ablate(*model, task, options, 4, {}, masked);
    CHECK(result.each.size() == 22);
    CHECK(result.baseline.at("loss") == task.evaluate(*model, {}, mask_scale(*model, masked)).metrics.at("loss"));
    for (const auto& row : result.each) CHECK(row.metrics.at("loss") != result.baseline.at("loss"));
  }
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
