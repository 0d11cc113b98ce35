// Rules of relevance against plain loops in double precision, and what must hold of whole models: all of a logit's
// relevance arrives at the embeddings, whatever the entries; without a guard nothing changes.
#include "modules/tensor/relevance.h"

#include <thread>

#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/scalar.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/low_rank.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/support/models.h"

namespace headlab {
namespace {

using Numbers = std::vector<double>;

/// R of one sum shared among its contributions z and its bias, as the header has it.
Numbers shares(const Numbers& z, double bias, double R, double alpha) {
  const auto I = static_cast<double>(z.size());
  double P = std::max(bias, 0.0), N = std::min(bias, 0.0);
  for (const auto one : z) {
    P += std::max(one, 0.0);
    N += std::min(one, 0.0);
  }
  Numbers given(z.size(), 0);
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (P == 0 && N == 0) given[i] = R / I;
    if (P > 0) given[i] += R * (N < 0 ? alpha : 1) * (std::max(z[i], 0.0) + std::max(bias, 0.0) / I) / P;
    if (N < 0) given[i] += R * (P > 0 ? 1 - alpha : 1) * (std::min(z[i], 0.0) + std::min(bias, 0.0) / I) / N;
  }
  return given;
}

double number(const Tensor& x, std::initializer_list<int64_t> place) {
  auto one = x;
  for (const auto i : place) one = one[i];
  return one.item<double>();
}

/// The relevance of x where y has R.
Tensor back(const Tensor& y, const Tensor& x, const Tensor& R) { return torch::autograd::grad({y}, {x}, {R})[0]; }

/// Where relevance ends: what enters the first layers.
struct Embeddings : Tap {
  std::vector<Tensor> of;
  bool wants(At at, Site site) const override { return at == At::residual_in && site.layer == 0; }
  Tensor see(At, Site, Tensor value, const AttentionCall*) override {
    of.push_back(value.detach().requires_grad_());
    return of.back();
  }
};

/// What arrives at the embeddings of each text [B] of one logit's relevance, that of example 1; and the logit.
std::pair<Tensor, double> arrives(Model& model, const Batch& batch, double alpha = 0.5) {
  const relevance::Guard guard(alpha);
  Embeddings embeddings;
  Forward run;
  run.taps = {&embeddings};
  const auto logits = model.logits(batch, run);
  for (const auto& one : relevance::uncovered(logits)) FAIL(one.operation);
  const auto example = logits[1];
  const auto logit = example.dim() == 1 ? example[2] : example[3][1];
  auto R = torch::zeros_like(logits);
  (example.dim() == 1 ? R[1][2] : R[1][3][1]).fill_(logit.item<double>());
  Tensor sum_B;
  for (const auto& relevance : torch::autograd::grad({logits}, embeddings.of, {R})) {
    const auto more = relevance.to(torch::kFloat64).sum({1, 2});
    sum_B = sum_B.defined() ? sum_B + more : more;
  }
  return {sum_B, logit.item<double>()};
}

void check_conserved(Model& model, const Batch& batch, double tolerance, double alpha = 0.5) {
  const auto [sum_B, logit] = arrives(model, batch, alpha);
  REQUIRE(std::abs(logit) > 1e-3);
  CHECK(std::abs(number(sum_B, {1}) - logit) <= tolerance * std::abs(logit));
  CHECK(number(sum_B, {0}) == 0);
  CHECK(number(sum_B, {2}) == 0);
}

}  // namespace

TEST_CASE("the rule of a product with a matrix is its formula, by loops", "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const int64_t T = 4, I = 5, O = 6;
  for (const double alpha : {0.5, 1.0, 0.3, 0.0})
    for (const bool biased : {true, false}) {
      CAPTURE(alpha, biased);
      auto x = noise({T, I}, "x");
      x[1].abs_();   // with the columns below: sums of one sign
      x[2].zero_();  // no contribution at all
      auto weight = noise({O, I}, "weight"), bias = biased ? noise({O}, "bias") : Tensor();
      weight[0].abs_();
      weight[1].abs_().neg_();
      x.requires_grad_();
      const auto R = noise({T, O}, "R");
      const relevance::Guard guard(alpha);
      const auto y = relevance::linear(x, weight, bias);
      CHECK(torch::equal(y, torch::nn::functional::linear(x, weight, bias)));
      const auto to_x = back(y, x, R);
      for (int64_t t = 0; t < T; ++t) {
        Numbers expected(static_cast<std::size_t>(I), 0);
        for (int64_t j = 0; j < O; ++j) {
          Numbers z;
          for (int64_t i = 0; i < I; ++i) z.push_back(number(x, {t, i}) * number(weight, {j, i}));
          const auto given = shares(z, biased ? number(bias, {j}) : 0, number(R, {t, j}), alpha);
          for (std::size_t i = 0; i < given.size(); ++i) expected[i] += given[i];
        }
        for (int64_t i = 0; i < I; ++i)
          CHECK(number(to_x, {t, i}) == Approx(expected[static_cast<std::size_t>(i)]).margin(1e-12));
      }
      CHECK(to_x.sum().item<double>() == Approx(R.sum().item<double>()));
    }
}

TEST_CASE("the rule of a residual sum is its formula, by loops", "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  auto x = noise({40}, "x"), y = noise({40}, "y");
  x[0] = 0, y[0] = 0, x[1] = 0;
  x.requires_grad_(), y.requires_grad_();
  const auto R = noise({40}, "R");
  const relevance::Guard guard(0.25);
  const auto sum = relevance::sum(x, y);
  CHECK(torch::equal(sum, x + y));
  const auto given = torch::autograd::grad({sum}, {x, y}, {R});
  for (int64_t i = 0; i < 40; ++i) {
    const auto expected = shares({number(x, {i}), number(y, {i})}, 0, number(R, {i}), 0.25);
    CHECK(number(given[0], {i}) == Approx(expected[0]).margin(1e-14));
    CHECK(number(given[1], {i}) == Approx(expected[1]).margin(1e-14));
  }
}

TEST_CASE("the rule of weights times values is its formula, by loops, and gives the weights nothing",
          "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const int64_t B = 2, T = 3, S = 4, K = 5;
  auto weights = noise({B, T, S}, "weights"), values = noise({B, S, K}, "values");
  weights[0] = weights[0].softmax(-1);
  weights[1][0].zero_();        // sees nothing
  values.select(2, 0).zero_();  // makes nothing
  weights.requires_grad_(), values.requires_grad_();
  const auto R = noise({B, T, K}, "R");
  const relevance::Guard guard(0.5);
  const auto z = relevance::weighted_sum(weights, values);
  CHECK(torch::equal(z, torch::matmul(weights, values)));
  const auto given = torch::autograd::grad({z}, {weights, values}, {R}, std::nullopt, false, /*allow_unused=*/true);
  CHECK_FALSE(given[0].defined());
  for (int64_t b = 0; b < B; ++b)
    for (int64_t k = 0; k < K; ++k) {
      Numbers expected(static_cast<std::size_t>(S), 0);
      for (int64_t t = 0; t < T; ++t) {
        Numbers terms;
        double size = 0;
        for (int64_t s = 0; s < S; ++s) {
          terms.push_back(number(weights, {b, t, s}) * number(values, {b, s, k}));
          size += std::abs(number(weights, {b, t, s}));
        }
        if (size == 0) continue;
        auto parts = shares(terms, 0, number(R, {b, t, k}), 0.5);
        if (k == 0)
          for (int64_t s = 0; s < S; ++s)
            parts[static_cast<std::size_t>(s)] = number(R, {b, t, k}) * std::abs(number(weights, {b, t, s})) / size;
        for (std::size_t s = 0; s < parts.size(); ++s) expected[s] += parts[s];
      }
      for (int64_t s = 0; s < S; ++s)
        CHECK(number(given[1], {b, s, k}) == Approx(expected[static_cast<std::size_t>(s)]).margin(1e-12));
    }
}

TEST_CASE("what is made number by number passes relevance on as it is", "[relevance][paper-22]") {
  const auto x = noise({3, 4}, "x").requires_grad_();
  const auto R = noise({3, 4}, "R");
  const relevance::Guard guard;
  const auto y = relevance::through(x, torch::gelu(x) * 3);
  CHECK(torch::equal(y, torch::gelu(x) * 3));
  CHECK(torch::equal(back(y, x, R), R));
  CHECK_THROWS_WITH(relevance::through(x, x.sum(1)), ContainsSubstring("expected [3, 4], got [3]"));
}

TEST_CASE("in a linear network of positive numbers an input's relevance is its part of the output: x_i w_i",
          "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto x = noise({5}, "x").abs().requires_grad_();
  const auto first = noise({7, 5}, "first").abs(), second = noise({3, 7}, "second").abs();
  for (const double alpha : {0.5, 1.0}) {
    const relevance::Guard guard(alpha);
    const auto y = relevance::linear(relevance::linear(x, first), second);
    const auto to_x = back(y, x, y.detach());
    const auto expected = x * torch::matmul(second, first).sum(0);
    CHECK(difference(to_x, expected) < 1e-12);
  }
}

TEST_CASE("without a guard every function is the plain operation, to the bit, also backwards", "[relevance]") {
  const auto x = noise({3, 6}, "x").requires_grad_(), weight = noise({4, 6}, "weight").requires_grad_(),
             bias = noise({4}, "bias").requires_grad_();
  const auto same = [&](const Tensor& made, const Tensor& plain) {
    CHECK(torch::equal(made, plain));
    CHECK(std::string(made.grad_fn()->name()) == plain.grad_fn()->name());
    const auto a = torch::autograd::grad({made.sum()}, {x, weight, bias}, {}, std::nullopt, false, true);
    const auto b = torch::autograd::grad({plain.sum()}, {x, weight, bias}, {}, std::nullopt, false, true);
    for (std::size_t i = 0; i < 3; ++i) CHECK((a[i].defined() ? torch::equal(a[i], b[i]) : !b[i].defined()));
  };
  { const relevance::Guard over_and_gone; }
  CHECK_FALSE(relevance::flows());
  same(relevance::linear(x, weight, bias), torch::nn::functional::linear(x, weight, bias));
  same(relevance::linear(x, weight), torch::nn::functional::linear(x, weight));
  same(relevance::sum(x, x * x), x + x * x);
  same(relevance::weighted_sum(weight, x.t()), torch::matmul(weight, x.t()));
  const auto y = torch::relu(x);
  CHECK(relevance::through(x, y).is_same(y));
}

TEST_CASE("a guard counts on its thread alone, and the outer one counts again after the inner one", "[relevance]") {
  const auto given = [](double alpha_of_test) {
    const DefaultDtype in_double(torch::kFloat64);
    const auto x = torch::tensor({3.0}, torch::kFloat64).requires_grad_(), y = torch::tensor({-1.0}, torch::kFloat64);
    return std::abs(back(relevance::sum(x, y), x, torch::ones({1}, torch::kFloat64)).item<double>() - alpha_of_test) <
           1e-15;
  };
  const relevance::Guard outer(0.75);
  CHECK(given(0.75));
  {
    const relevance::Guard inner(0.25);
    CHECK(given(0.25));
    bool elsewhere = true;
    std::thread([&] { elsewhere = relevance::flows(); }).join();
    CHECK_FALSE(elsewhere);
  }
  CHECK(given(0.75));
}

TEST_CASE("an operation without a rule is found, and what only moves numbers is none", "[relevance]") {
  const auto x = noise({2, 3, 4}, "x").requires_grad_(), weight = noise({5, 4}, "weight").requires_grad_();
  const relevance::Guard guard;
  const auto moved =
      torch::cat({relevance::linear(x, weight).transpose(1, 2).flatten(0, 1).unsqueeze(0).narrow(1, 1, 4),
                  torch::zeros({1, 4, 3})},
                 1)
          .select(0, 0)
          .to(torch::kFloat64);
  CHECK(relevance::uncovered(moved).empty());
  const auto found = relevance::uncovered(relevance::linear((x * 2).tanh(), weight));
  REQUIRE(found.size() == 2);
  CHECK(found[0].operation == "TanhBackward0");
  CHECK(found[1].operation.substr(0, 11) == "MulBackward");
  CHECK(found[0].order > found[1].order);
}

TEST_CASE("a logit's relevance arrives whole at the embeddings, for models of each kind and every entry",
          "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto batch = small_batch();
  using A = AttentionOptions;
  const auto gate = [](const std::string& type) { return Choice(gate_catalogue, type); };
  const auto mixed = [](A& a, std::vector<std::string> what) {
    Choice choice(adapter_catalogue, "mix_heads");
    choice.as<MixHeadsOptions>().mix = std::move(what);
    a.then.items = {choice};
  };
  std::map<std::string, std::function<void(A&)>> self_alone{{"rope", [](A& a) { a.position.choose("rope"); }},
                                                            {"alibi", [](A& a) { a.position.choose("alibi"); }},
                                                            {"windows", [&](A& a) {
                                                               a.gates.items = {gate("windows")};
                                                               a.gates.items[0].as<WindowsOptions>().windows = {1, 2, 0,
                                                                                                                3};
                                                             }}};
  std::map<std::string, std::function<void(A&)>> changes{
      {"standard", [](A&) {}},
      {"no bias, values of width 3",
       [](A& a) {
         a.value_width = 3;
         a.project.as<StandardProjectOptions>().bias = false;
         a.mix.as<ConcatenateOptions>().bias = false;
       }},
      {"grouped",
       [](A& a) {
         a.project.choose("grouped");
         a.project.as<GroupedProjectOptions>().groups = 2;
       }},
      {"mixed heads", [&](A& a) { mixed(a, {"k", "v"}); }},
      {"mixed keys of two groups",
       [&](A& a) {
         a.project.choose("grouped");
         a.project.as<GroupedProjectOptions>().groups = 2;
         mixed(a, {"k"});
       }},
      {"additive scores", [](A& a) { a.weigh.score.choose("additive"); }},
      {"gates",
       [&](A& a) {
         a.gates.items = {gate("scalar"), gate("hard_concrete"), gate("head_norm")};
         a.gates.items[0].as<ScalarGateOptions>().initial = -0.5;
         a.gates.items[1].as<HardConcreteOptions>().initial = 0.3;
       }},
      {"mix of low rank", [](A& a) { a.mix.choose("low_rank"); }}};
  for (const auto& [name, change] : changes) {
    CAPTURE(name);
    auto attention = small_attention();
    change(attention);
    check_conserved(*make_model(model_choice("encoder_decoder", small_encoder_decoder(attention, attention))), batch,
                    1e-10);
  }
  for (const auto& [name, change] : self_alone) {
    CAPTURE(name);
    auto attention = small_attention();
    change(attention);
    check_conserved(*make_model(model_choice("decoder_only", small_decoder_only(attention))), batch, 1e-10);
    check_conserved(*make_model(model_choice("encoder_only", small_encoder_only(attention))), batch, 1e-10);
  }
  for (const auto& norm : norms().catalogue().names())
    for (const auto& residual : residuals().catalogue().names())
      for (const auto& feed_forward : feed_forwards().catalogue().names()) {
        CAPTURE(norm, residual, feed_forward);
        auto options = small_encoder_decoder();
        options.norm.choose(norm);
        options.residual.choose(residual);
        options.encoder.feed_forward.choose(feed_forward);
        options.decoder.feed_forward.choose(feed_forward);
        check_conserved(*make_model(model_choice("encoder_decoder", options)), batch, 1e-10);
      }
  for (const double alpha : {0.0, 0.3, 1.0})
    check_conserved(*make_model(model_choice("decoder_only", small_decoder_only())), batch, 1e-10, alpha);
  auto context = small_context();
  context.classes = 5;
  for (const auto& output : outputs().catalogue().names())
    for (const auto* pooling : {"mean", "first", "last"})
      for (const bool padded : {true, false}) {
        if (output != "classes" && pooling != std::string("mean")) continue;
        CAPTURE(output, pooling, padded);
        auto options = small_encoder_only();
        options.output.choose(output);
        if (output == "classes") options.output.as<ClassesOutputOptions>().pooling = pooling;
        auto texts = batch;
        if (!padded) texts.target_mask_BT = Tensor();
        check_conserved(*make_model(model_choice("encoder_only", options), context), texts, 1e-10);
      }
}

TEST_CASE("an attention without heads gives its bias's relevance to its input", "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = make_model(model_choice("encoder_decoder", small_encoder_decoder()));
  auto kept = model->heads();
  kept[Stack::enc_self][1] = {};
  kept[Stack::dec_cross][0] = {};
  kept[Stack::dec_self][1] = {2};
  model->keep(kept);
  check_conserved(*model, small_batch(), 1e-10);
}

TEST_CASE("relevance is whole to rounding in single precision", "[relevance][paper-22]") {
  check_conserved(*make_model(model_choice("encoder_decoder", small_encoder_decoder())), small_batch(), 1e-4);
}

TEST_CASE("a pass under the guard gives the values of one without, and leaves the next as it was", "[relevance]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = make_model(model_choice("encoder_decoder", small_encoder_decoder()));
  const auto before = logits_of(*model, small_batch());
  Tensor under;
  {
    const relevance::Guard guard;
    under = logits_of(*model, small_batch());
  }
  CHECK(difference(before, under) < 1e-12);
  CHECK(torch::equal(before, logits_of(*model, small_batch())));
}

TEST_CASE("padding and what a causal model has not read get no relevance", "[relevance][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const auto model = make_model(model_choice("encoder_decoder", small_encoder_decoder()));
  const auto batch = small_batch();  // source 1 has 4 tokens of 6, its logit is that of target 3
  const relevance::Guard guard;
  Embeddings embeddings;
  Forward run;
  run.taps = {&embeddings};
  const auto logits = model->logits(batch, run);
  auto R = torch::zeros_like(logits);
  R[1][3][1] = 1;
  const auto reached = torch::autograd::grad({logits}, embeddings.of, {R});
  const auto by_source = reached[0][1].sum(-1), by_target = reached[1][1].sum(-1);
  for (int64_t s = 0; s < 6; ++s) CHECK((number(by_source, {s}) > 0) == (s < 4));
  for (int64_t t = 0; t < 8; ++t) CHECK((number(by_target, {t}) > 0) == (t <= 3));
  for (const auto& one : reached) CHECK(one.min().item<double>() >= 0);
}

}  // namespace headlab
