// 2406.06567: heads fused into groups that keys and values have each for themselves.
#include "src/convert/decoupled.h"

#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/standard.h"
#include "modules/model/attentions.h"
#include "src/convert/convert.h"
#include "src/convert/fuse_groups.h"
#include "src/convert/head_maps.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/toy_task.h"

using namespace headlab;

namespace {

constexpr int64_t H = 4, K = 2, vocabulary = 20;

const ToyTask& toy() {
  static const ToyTask task({5, 7, 4, 6, 8, 5, 6, 7}, vocabulary);
  return task;
}

Choice toy_options(const std::string& position = "rope") {
  auto options = small_encoder_decoder();
  options.encoder.attention.position.choose(position);
  options.decoder.attention.position.choose(position);
  return model_choice("encoder_decoder", options);
}

std::shared_ptr<Model> toy_model_of(const Choice& options, const HeadTable& kept = {}) {
  auto context = toy().context();
  context.kept = kept;
  auto model = models().make(options, context);
  fill(*model);
  model->eval();
  return model;
}

Converted converted(Model& model, const Choice& options, const Choice& to, uint64_t seed = 1) {
  ConvertOptions how;
  how.to = to;
  return convert(model, options, how, toy(), seed,
                 [](const Choice& made, const HeadTable& kept) { return toy_model_of(made, kept); });
}

Choice decoupled(double budget, const std::string& groups = "similar", const std::string& budgets = "equal") {
  Choice choice(conversion_catalogue, "decoupled");
  auto& grouping = choice.as<DecoupledConversionOptions>().grouping;
  grouping.kv_budget = budget;
  grouping.groups = groups;
  grouping.budgets = budgets;
  grouping.search.steps = 3;
  grouping.search.max_tokens = 64;
  return choice;
}

Choice fuse(double budget) {
  Choice choice(conversion_catalogue, "fuse_groups");
  auto& grouping = choice.as<FuseGroupsConversionOptions>().grouping;
  grouping.kv_budget = budget;
  grouping.budgets = "equal";
  return choice;
}

std::vector<Attention*> attentions_of(Model& model) {
  std::vector<Attention*> all;
  for (const auto& [site, mixer] : model.mixers()) all.push_back(dynamic_cast<Attention*>(mixer));
  return all;
}

Tensor toy_logits(Model& model) {
  torch::NoGradGuard no_grad;
  Forward run;
  return model.logits(toy().batch("test", {0, 1, 2, 3}, torch::kCPU).inputs, run);
}

/// Gives each head the keys and values of the first of its group.
void make_identical(Model& model, const std::vector<int64_t>& keys, const std::vector<int64_t>& values) {
  torch::NoGradGuard no_grad;
  for (auto* attention : attentions_of(model)) {
    auto maps = head_maps(*attention, {});
    for (int64_t h = 0; h < H; ++h) {
      const auto same = [&](const std::vector<int64_t>& of) {
        return std::find(of.begin(), of.end(), of[h]) - of.begin();
      };
      maps.key_GDK[h].copy_(maps.key_GDK[same(keys)]);
      maps.key_bias_GK[h].copy_(maps.key_bias_GK[same(keys)]);
      maps.value_GDK[h].copy_(maps.value_GDK[same(values)]);
      maps.value_bias_GK[h].copy_(maps.value_bias_GK[same(values)]);
    }
    set_head_maps(*attention, maps);
  }
}

}  // namespace

TEST_CASE("a conversion to heads that fuse changes no logit") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  const auto made = converted(*model, options, fuse(0.5));
  CHECK(difference(toy_logits(*made.model), toy_logits(*model)) < 1e-5);
  CHECK(made.report["cache_after"] == made.report["cache_before"]);
  CHECK(attentions_of(*made.model)[0]->options().then.items[0].type() == "fuse_groups");
  CHECK(made.report["attentions"]["enc.self.0"]["key_groups"] == 2);
}

TEST_CASE("heads that are alike are found and shared without loss") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  make_identical(*model, {0, 1, 0, 1}, {0, 1, 1, 0});
  const auto before = toy_logits(*model);
  for (const std::string similarity : {"cosine", "cka"}) {
    auto to = decoupled(0.5);
    to.as<DecoupledConversionOptions>().grouping.similarity = similarity;
    const auto made = converted(*model, options, to);
    CHECK(difference(toy_logits(*made.model), before) < 1e-5);
    CHECK(made.report["largest"]["key_error"].get<double>() < 1e-7);
    for (auto* attention : attentions_of(*made.model)) {
      const auto& project = attention->options().project.as<DecoupledProjectOptions>();
      CHECK((project.k_map == std::vector<int64_t>{0, 1, 0, 1}));
      CHECK((project.v_map == std::vector<int64_t>{0, 1, 1, 0}));
    }
    CHECK(2 * made.report["cache_after"].get<int64_t>() == made.report["cache_before"].get<int64_t>());
  }
}

TEST_CASE("contiguous groups of equal budgets are grouped queries of mean keys and values") {
  const auto options = toy_options("none");
  const auto model = toy_model_of(options);
  const auto made = converted(*model, options, decoupled(0.5, "contiguous"));
  torch::NoGradGuard no_grad;
  auto grouped_options = options;
  auto& stacks = grouped_options.as<EncoderDecoderOptions>();
  for (auto* attention : {&stacks.encoder.attention, &stacks.decoder.attention, &stacks.decoder.cross_attention}) {
    attention->project.choose("grouped");
    attention->project.as<GroupedProjectOptions>().groups = 2;
  }
  const auto grouped = toy_model_of(grouped_options);
  auto mine = grouped->named_parameters();
  for (const auto& item : model->named_parameters())
    if (mine[item.key()].sizes() == item.value().sizes()) mine[item.key()].copy_(item.value());
  const auto before = attentions_of(*model), after = attentions_of(*grouped);
  for (std::size_t i = 0; i < before.size(); ++i) {
    auto maps = head_maps(*before[i], {});
    const auto pooled = [](Tensor& x) { x = torch::stack({(x[0] + x[1]) / 2, (x[2] + x[3]) / 2}); };
    for (auto* x : {&maps.key_GDK, &maps.value_GDK, &maps.key_bias_GK, &maps.value_bias_GK}) pooled(*x);
    set_head_maps(*after[i], maps);
  }
  CHECK(difference(toy_logits(*made.model), toy_logits(*grouped)) < 1e-5);
}

TEST_CASE("a fusion that has come to its end is kept exactly, as sum_j w_j W_j") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  const auto fusing = converted(*model, options, fuse(0.5));
  torch::NoGradGuard no_grad;
  for (auto* attention : attentions_of(*fusing.model))
    for (const auto* name : {"then0.key_mix", "then0.value_mix"})
      parameter_of(*attention, name).copy_(noise({H, 1}, name).expand({H, H}));
  const auto before = toy_logits(*fusing.model);
  const auto made = converted(*fusing.model, fusing.options, Choice(conversion_catalogue, "decoupled"));
  CHECK(difference(toy_logits(*made.model), before) < 1e-5);
  CHECK(difference(before, toy_logits(*model)) > 1e-2);
  CHECK(made.report["largest"]["key_fusion"].get<double>() < 1e-12);
  CHECK(2 * made.report["cache_after"].get<int64_t>() == made.report["cache_before"].get<int64_t>());
  auto* was = attentions_of(*model)[0];
  auto* is = attentions_of(*made.model)[0];
  const auto maps = head_maps(*was, {});
  const auto& groups = is->options().project.as<DecoupledProjectOptions>().k_map;
  auto sum = torch::zeros_like(maps.key_GDK[0]);
  const auto weights = noise({H, 1}, "then0.key_mix");
  for (int64_t h = 0; h < H; ++h)
    if (groups[h] == 0) sum += weights[h].item<double>() * maps.key_GDK[h];
  CHECK(difference(parameter_of(*is, "project.key_weight").narrow(0, 0, K), sum.t()) < 1e-6);
}

TEST_CASE("what a fusion leaves apart is averaged, and told") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  const auto fusing = converted(*model, options, fuse(0.5));
  const auto made = converted(*fusing.model, fusing.options,
                              Choice(conversion_catalogue, "decoupled"));  // not trained: w is the identity
  CHECK(made.report["largest"]["key_fusion"] == 2.0);
  CHECK(made.report["largest"]["value_error"].get<double>() > 0.1);
  const auto at_once = converted(*model, options, decoupled(0.5));
  CHECK(difference(toy_logits(*made.model), toy_logits(*at_once.model)) < 1e-5);
}

TEST_CASE("budgets of layers add up to the share that is asked for, however they are found") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  const auto sites = static_cast<int64_t>(model->mixers().size());
  for (const std::string budgets : {"equal", "similarity", "loss"})
    for (const std::string groups : {"similar", "contiguous", "random"})
      for (const double budget : {0.25, 0.3, 0.5, 1.0}) {
        const auto made = converted(*model, options, decoupled(budget, groups, budgets));
        int64_t heads = 0;
        for (const auto& [site, figures] : made.report["attentions"].items())
          heads += figures["key_groups"].get<int64_t>() + figures["value_groups"].get<int64_t>();
        CHECK(heads == std::llround(budget * static_cast<double>(2 * H * sites)));
        CHECK(made.report["cache_after"].get<int64_t>() == heads * K);
        if (budget == 1.0) CHECK(difference(toy_logits(*made.model), toy_logits(*model)) < 1e-5);
      }
}

TEST_CASE("the search for budgets leaves the model as it is, and is the same again") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  std::map<std::string, Tensor> before;
  for (const auto& item : model->named_parameters()) before[item.key()] = item.value().clone();
  ConversionWork work{*model, toy(), {}, 3};
  std::map<Site, FusionGroups> groups;
  for (const auto& [site, mixer] : model->mixers()) {
    work.attentions.push_back({site, dynamic_cast<Attention*>(mixer)});
    groups[site] = {{0, 0, 1, 1}, {0, 1, 2, 3}};
  }
  FusionSearchOptions search;
  search.steps = 40;
  search.learning_rate = 0.05;
  search.lr_lambda = 0.3;
  search.max_tokens = 64;
  const auto one = search_fusion(work, groups, search), two = search_fusion(work, groups, search);
  for (const auto& [site, left] : one) {
    CHECK(left.keys < 0.5);  // of 2
    CHECK(left.values == 0.0);
    CHECK(left.keys == two.at(site).keys);
  }
  for (const auto& item : model->named_parameters()) {
    CHECK(torch::equal(item.value(), before.at(item.key())));
    CHECK(!item.value().grad().defined());
  }
}

TEST_CASE("likeness by cka is that of spaces, by cosine that of matrices") {
  const auto x = noise({1, 6, 3}, "x"), rotation = std::get<0>(torch::linalg_qr(noise({3, 3}, "r")));
  const auto both = torch::cat({x, 2 * x, torch::matmul(x, rotation) + 1, noise({1, 6, 3}, "other")});
  const auto cosine = head_similarity(both, "cosine"), cka = head_similarity(both, "cka");
  CHECK(cosine[0][1] == Approx(1));
  CHECK(cosine[0][2] < 0.9);
  CHECK(cka[0][1] == Approx(1));
  CHECK(cka[0][2] == Approx(1));
  CHECK(cka[0][3] < 0.9);
  // |X^T Y|^2 / (|X^T X| |Y^T Y|), by its formula
  const auto centred = [](const Tensor& one) { return (one - one.mean(0, true)).to(torch::kFloat64); };
  const auto X = centred(both[0]), Y = centred(both[3]);
  const auto norm = [](const Tensor& a, const Tensor& b) { return torch::matmul(a.t(), b).norm().item<double>(); };
  CHECK(cka[0][3] == Approx(norm(X, Y) * norm(X, Y) / (norm(X, X) * norm(Y, Y))));
}

TEST_CASE("what can't be grouped is told by its site") {
  const auto options = toy_options();
  const auto model = toy_model_of(options);
  CHECK_THROWS_WITH(converted(*model, options, decoupled(0.2)), ContainsSubstring("kv_budget: expected at least 0.25"));
  auto kept = model->heads();
  kept[Stack::dec_self][1] = {0, 2};
  model->keep(kept);
  CHECK_THROWS_WITH(converted(*model, options, decoupled(0.5)), ContainsSubstring("dec.self.1: expected all heads"));
}
