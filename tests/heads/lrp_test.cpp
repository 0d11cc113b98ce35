#include "src/heads/score/lrp.h"

#include <nlohmann/json.hpp>

#include "modules/base/atomic_file.h"
#include "modules/base/error.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"
#include "tests/support/program.h"
#include "tests/support/toy_task.h"

namespace headlab {
namespace {

/// ToyTask's texts for a model of one text.
std::shared_ptr<DecoderOnly> one_layer(const ToyTask& task) {
  DecoderOnlyOptions options;
  options.d_model = 8;
  options.dropout = 0;
  options.decoder.layers = 1;
  options.decoder.attention.heads = 4;
  options.decoder.feed_forward.as<PositionWiseOptions>().width = 6;
  auto model = std::make_shared<DecoderOnly>(options, task.context());
  fill(*model);
  return model;
}

using Row = std::vector<double>;

Row row_of(const Tensor& x) {
  const auto flat = x.detach().to(torch::kFloat64).flatten().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// Relevance of a sum's inputs by the formula of modules/tensor/relevance.h, alpha 1/2.
void give(const Row& z, double bias, double R, const std::function<void(std::size_t, double)>& to) {
  double P = std::max(bias, 0.0), N = std::min(bias, 0.0);
  for (const auto one : z) (one > 0 ? P : N) += one;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double plus = P > 0 ? (std::max(z[i], 0.0) + std::max(bias, 0.0) / static_cast<double>(z.size())) / P : 0;
    const double minus = N < 0 ? (std::min(z[i], 0.0) + std::min(bias, 0.0) / static_cast<double>(z.size())) / N : 0;
    to(i, R * (P > 0 && N < 0 ? (plus + minus) / 2 : plus + minus));
  }
}

/// R of a layer's outputs -> R of its inputs.
Row through_layer(const Row& x, const Tensor& weight, const Tensor& bias, const Row& R) {
  Row given(x.size(), 0);
  const auto b = bias.defined() ? row_of(bias) : Row(R.size(), 0);
  for (std::size_t j = 0; j < R.size(); ++j) {
    auto z = row_of(weight[static_cast<int64_t>(j)]);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] *= x[i];
    give(z, b[j], R[j], [&](std::size_t i, double part) { given[i] += part; });
  }
  return given;
}

std::pair<Row, Row> through_sum(const Row& x, const Row& y, const Row& R) {
  Row to_x(x.size()), to_y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    give({x[i], y[i]}, 0, R[i], [&](std::size_t which, double part) { (which == 0 ? to_x : to_y)[i] = part; });
  return {to_x, to_y};
}

/// All that a pass comes by.
struct Seen : Tap {
  std::map<At, Tensor> of;
  bool wants(At at, Site) const override {
    return at == At::z || at == At::y || at == At::residual_in || at == At::residual_mid || at == At::residual_out ||
           at == At::logits;
  }
  Tensor see(At at, Site, Tensor value, const AttentionCall*) override { return of[at] = value; }
};

HeadScores score(Model& model, const Task& task, const std::function<void(RelevanceScorerOptions&)>& change = {}) {
  RelevanceScorerOptions options;
  if (change) change(options);
  return RelevanceScorer(options).score(model, task, 0);
}

}  // namespace

TEST_CASE("the relevance of heads is the mean of their shares of each question's logit, by loops through a layer",
          "[heads][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 4});
  for (const auto* logit : {"predicted", "right"}) {
    CAPTURE(logit);
    auto model = one_layer(task);
    model->eval();
    const auto batch = task.batch("valid", {0, 1, 2}, torch::kCPU);
    const torch::NoGradGuard no_grad;
    Seen seen;
    Forward run;
    run.taps = {&seen};
    const auto logits = model->logits(batch.inputs, run);
    const auto weights = model->named_parameters();
    const auto find = [&](const std::string& name) {
      const auto* found = weights.find(name);
      REQUIRE(found);
      return *found;
    };
    const std::string layer = "decoder.layers.0.";
    const auto inner = find(layer + "feed_forward.inner.weight"), inner_bias = find(layer + "feed_forward.inner.bias"),
               outer = find(layer + "feed_forward.outer.weight"), outer_bias = find(layer + "feed_forward.outer.bias");
    Row expected(4, 0), raw(4, 0);
    int64_t n = 0;
    const std::vector<int64_t> lengths{5, 7, 4};
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t, ++n) {
        const auto answer =
            logit == std::string("right") ? batch.targets_N[n].item<int64_t>() : logits[b][t].argmax().item<int64_t>();
        const auto in = seen.of.at(At::residual_in)[b][t], mid = seen.of.at(At::residual_mid)[b][t],
                   out = seen.of.at(At::residual_out)[b][t];
        const auto norm = [&](const std::string& name, const Tensor& x) {
          return torch::layer_norm(x, {8}, find(name + ".weight"), find(name + ".bias"), 1e-5);
        };
        Row R_logits(20, 0);
        R_logits[static_cast<std::size_t>(answer)] = 1;
        const auto R_out = through_layer(row_of(norm("decoder.norm", out)), find("tokens.weight"), {}, R_logits);
        const auto [to_mid, to_fed] = through_sum(row_of(mid), row_of(out - mid), R_out);
        const auto x = norm(layer + "feed_forward_norm", mid);
        const auto hidden = torch::relu(torch::nn::functional::linear(x, inner, inner_bias));
        const auto fed =
            through_layer(row_of(x), inner, inner_bias, through_layer(row_of(hidden), outer, outer_bias, to_fed));
        Row R_mid = to_mid;
        for (std::size_t i = 0; i < R_mid.size(); ++i) R_mid[i] += fed[i];
        const auto to_y = through_sum(row_of(in), row_of(mid - in), R_mid).second;
        const auto z = seen.of.at(At::z)[b].select(1, t).reshape({8});
        const auto R_z = through_layer(row_of(z), find(layer + "self_attention.mix.weight"),
                                       find(layer + "self_attention.mix.bias"), to_y);
        double sum = 0;
        for (const auto one : R_z) sum += one;
        for (std::size_t h = 0; h < 4; ++h) {
          expected[h] += (R_z[2 * h] + R_z[2 * h + 1]) / sum;
          raw[h] += R_z[2 * h] + R_z[2 * h + 1];
        }
      }
    REQUIRE(n == 16);
    const auto shares = score(*model, task, [&](auto& o) { o.logit = logit; });
    const auto parts = score(*model, task, [&](auto& o) {
      o.logit = logit;
      o.normalise = "none";
    });
    for (int64_t h = 0; h < 4; ++h) {
      CHECK(shares.heads.at({Stack::dec_self, 0, h}) ==
            Approx(expected[static_cast<std::size_t>(h)] / 16).epsilon(1e-9));
      CHECK(parts.heads.at({Stack::dec_self, 0, h}) == Approx(raw[static_cast<std::size_t>(h)] / 16).epsilon(1e-9));
    }
  }
}

TEST_CASE(
    "shares of an attention add up to 1; a head with nothing in the output's matrix has none, the same every time",
    "[heads][paper-22]") {
  const DefaultDtype in_double(torch::kFloat64);
  const ToyTask task({5, 7, 4});
  auto model = toy_model(task);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& [site, mixer] : model->mixers())
      mixer->named_parameters()["mix.weight"].narrow(1, 2 * 4, 4).zero_();
  }
  const auto before = model->parameters().front().clone();
  model->train();
  const auto scores = score(*model, task), again = score(*model, task);
  CHECK(model->is_training());
  CHECK((scores.heads == again.heads));
  CHECK(torch::equal(before, model->parameters().front()));
  for (const auto& parameter : model->parameters()) CHECK_FALSE(parameter.grad().defined());
  REQUIRE(scores.heads.size() == 24);
  for (const auto& [site, mixer] : model->mixers()) {
    double sum = 0;
    for (int64_t h = 0; h < 4; ++h) {
      const auto share = scores.heads.at({site.stack, site.layer, h});
      CHECK((h == 2 ? share == 0 : share > 0));
      sum += share;
    }
    CHECK(sum == Approx(1));
  }
}

TEST_CASE("relevance is of the heads that are left, of some questions or all, whatever type products take",
          "[heads][paper-22]") {
  const ToyTask task({5, 7, 4, 1});
  auto model = toy_model(task);
  fill(*model);
  model->keep(without(model->heads(), parse_heads({"enc.self.0.0", "enc.self.0.3", "dec.cross.0.0", "dec.cross.0.1",
                                                   "dec.cross.0.2", "dec.cross.0.3"})));
  const auto all = score(*model, task);
  CHECK(all.heads.size() == 18);
  CHECK(all.heads.at({Stack::enc_self, 0, 1}) + all.heads.at({Stack::enc_self, 0, 2}) == Approx(1));
  CHECK((score(*model, task, [](auto& o) { o.questions = 7; }).heads == all.heads));
  const auto middle = score(*model, task, [](auto& o) { o.questions = 1; });
  CHECK(middle.heads.at({Stack::enc_self, 0, 1}) + middle.heads.at({Stack::enc_self, 0, 2}) == Approx(1));
  CHECK((middle.heads != all.heads));
  // Batches of one text each have no padding, and give the same.
  const auto apart = score(*model, task, [](auto& o) { o.max_tokens = 1; });
  for (const auto& [head, share] : all.heads) CHECK(apart.heads.at(head) == Approx(share).epsilon(1e-4));
  model->multiply_in(torch::kBFloat16);
  CHECK((score(*model, task).heads == all.heads));
  CHECK(model->multiplies_in() == torch::kBFloat16);
}

TEST_CASE("a model of classes is asked once a text", "[heads][paper-22]") {
  /// One question a text, said as rows.
  class Labels : public ToyTask {
   public:
    using ToyTask::ToyTask;
    bool rows = true;
    TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                       torch::Device device) const override {
      auto batch = ToyTask::collect(split, examples, device);
      const auto B = static_cast<int64_t>(examples.size());
      batch.targets_N = torch::zeros({B}, torch::kLong);
      batch.rows_N = rows ? torch::arange(B) : Tensor();
      batch.tokens = B;
      return batch;
    }
  } task({5, 7, 4});
  EncoderOnlyOptions options;
  options.d_model = 16;
  options.dropout = 0;
  options.encoder.layers = 2;
  options.encoder.attention.heads = 4;
  options.output.choose("classes");
  auto context = task.context();
  context.classes = 3;
  const auto model = std::make_shared<EncoderOnly>(options, context);
  fill(*model);
  const auto scores = score(*model, task);
  task.rows = false;
  CHECK((score(*model, task).heads == scores.heads));
  double sum = 0;
  for (const auto& [head, share] : scores.heads) sum += share;
  CHECK(sum == Approx(2));
}

TEST_CASE("relevance is refused with its place where tokens are routed, and where an operation has no rule",
          "[heads][paper-22]") {
  const ToyTask task({5, 4});
  EncoderDecoderOptions options;
  options.d_model = 16;
  options.encoder.attention.project.choose("experts");
  options.encoder.attention.mix.choose("experts");
  options.encoder.attention.gates.items = {Choice(gate_catalogue, "route_experts")};
  const auto routed = std::make_shared<EncoderDecoder>(options, task.context());
  CHECK_THROWS_WITH(score(*routed, task), ContainsSubstring("lrp: enc.self.0 routes tokens to heads"));

  /// Its logits are squashed, which no rule covers.
  class Squashed : public DecoderOnly {
   public:
    using DecoderOnly::DecoderOnly;
    Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) override {
      return DecoderOnly::row_logits(batch, rows_N, run).tanh();
    }
  };
  DecoderOnlyOptions small;
  small.d_model = 16;
  small.decoder.layers = 1;
  const auto squashed = std::make_shared<Squashed>(small, task.context());
  fill(*squashed);
  CHECK_THROWS_WITH(
      score(*squashed, task),
      ContainsSubstring("lrp: expected operations with a rule of relevance, got TanhBackward0 in the output"));

  /// Passes that change what is seen on the way stand for entries without a rule.
  struct Changed : DecoderOnly {
    using DecoderOnly::DecoderOnly;
    At where = At::z;
    Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) override {
      LambdaTap squares([this](At at, Site) { return at == where; },
                        [](At, Site, Tensor value) { return value * value; });
      run.taps.insert(run.taps.begin(), &squares);
      auto logits = DecoderOnly::row_logits(batch, rows_N, run);
      run.taps.erase(run.taps.begin());
      return logits;
    }
  };
  const auto changed = std::make_shared<Changed>(small, task.context());
  fill(*changed);
  const auto refused_at = [&](At at, const std::string& where) {
    changed->where = at;
    CHECK_THROWS_WITH(score(*changed, task), ContainsSubstring(where));
  };
  refused_at(At::z, "in dec.self.0 (project standard, then none, weigh dot_product and softmax)");
  refused_at(At::y, "in dec.self.0 (gates none, mix concatenate)");
  refused_at(At::residual_out, "in decoder.layers.0 (feed_forward headlab::ReluFeedForward, its norm and residual)");
}

TEST_CASE(
    "of four heads, three of which see their own token alone, the one that can look back has the most relevance: a "
    "spec",
    "[heads][run][paper-22]") {
  const test::Folder folder;
  const auto spec = folder.write("x.json", R"spec({
    "name": "planted",
    "task": {"type": "generated", "exercise": {"type": "offsets", "vocabulary": 8, "length": {"min": 12, "max": 12}, "offsets": [2]},
             "train": 2000, "valid": 40, "test": 40},
    "model": {"type": "decoder_only", "d_model": 32, "dropout": 0.0,
              "decoder": {"layers": 1, "attention": {"heads": 4, "position": "rope", "gates": [{"type": "windows", "windows": [1, 1, 0, 1]}]},
                          "feed_forward": {"type": "relu", "width": 32}},
              "embedding": {"max_length": 32, "position": "none"}},
    "stages": [{"train": {"steps": 250, "batch": {"max_tokens": 384}, "label_smoothing": 0.0, "schedule": {"type": "cosine", "peak": 0.01, "warmup": 20}, "log_every": 250}},
               {"evaluate": {"metrics": ["accuracy"]}},
               {"score": {"scorer": "lrp"}},
               {"score": {"name": "one", "scorer": {"type": "lrp", "logit": "right", "questions": 1, "limit": 20}, "against": ["score"]}},
               {"score": {"name": "again", "scorer": "lrp", "against": ["score", "one"]}}],
    "expect": [{"claim": "the symbols are right", "that": "evaluate.accuracy", "at_least": 0.95},
               {"claim": "the head that looks back has the most", "that": "score.heads.dec.self.0.2",
                "above": "max(score.heads.dec.self.0.0, score.heads.dec.self.0.1, score.heads.dec.self.0.3)"},
               {"claim": "also of one question a text", "that": "one.heads.dec.self.0.2",
                "above": "max(one.heads.dec.self.0.0, one.heads.dec.self.0.1, one.heads.dec.self.0.3)"},
               {"claim": "the same scores rank alike", "that": "again.agreement.score.dec.self", "equals": 1},
               {"claim": "either way round", "that": "again.agreement.one.all", "equals": "one.agreement.score.all", "within": 1e-9}]})spec");
  const auto done = test::run_program(
      {"run", spec.string(), "--out", (folder.path() / "runs").string(), "--threads", "1", "--quiet"});
  INFO(done.out << done.err);
  CHECK(done.code == 0);
}

}  // namespace headlab
