// 2607.19363: rotary positions whose frequencies, and factors of the scores, each head learns.
#include "modules/attention/position/adarope.h"

#include <torch/optim/adam.h>

#include <numbers>
#include <set>

#include "modules/attention/position/rope.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram_and_attention.h"
#include "modules/model/frame_ctc.h"
#include "modules/model/unroll.h"
#include "src/checkpoint/checkpoint.h"
#include "src/train/optimizer.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/scratch.h"
#include "tests/support/taps.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 9, D = 12, H = 4, K = 6;

AttentionOptions adaptive(const std::function<void(AdaRopeOptions&)>& change = {}, int64_t groups = 0) {
  AttentionOptions options;
  options.heads = H;
  options.head_width = K;
  if (groups > 0) {
    options.project.choose("grouped");
    options.project.as<GroupedProjectOptions>().groups = groups;
  }
  options.position.choose("adarope");
  if (change) change(options.position.as<AdaRopeOptions>());
  return options;
}

Shape shape_of(int64_t heads, int64_t groups, int64_t width) {
  auto shape = std::make_shared<AttentionShape>();
  shape->head_width = shape->value_width = width;
  shape->original_heads = heads;
  for (int64_t h = 0; h < heads; ++h) shape->heads.push_back(h);
  set_groups(*shape, groups);
  return shape;
}

Tensor parameter(torch::nn::Module& module, const std::string& name) {
  for (auto& item : module.named_parameters())
    if (item.key() == name) return item.value();
  return module.named_buffers()[name];
}

/// (R_g(t) q_t) . (R_g(s) k_s) c_h (1 + a_h max(0, ln((t + 1) / L)))^2 / sqrt(K), number by number.
Tensor by_loops(Attention& attention, int64_t G, int64_t L, const Tensor& x, const reference::Sees& sees) {
  const auto p = attention.named_parameters();
  const auto rows = [&](const std::string& name, int64_t from, int64_t count) {
    return p[name].narrow(0, from, count);
  };
  const auto q = reference::project(x, rows("project.weight", 0, H * K), rows("project.bias", 0, H * K), K);
  const auto k = reference::project(x, rows("project.weight", H * K, G * K), rows("project.bias", H * K, G * K), K);
  const auto v =
      reference::project(x, rows("project.weight", (H + G) * K, G * K), rows("project.bias", (H + G) * K, G * K), K);
  const auto lambda = reference::in_double(p["position.log_frequency"]);
  const auto c = reference::in_double(p["position.factor"]), a = reference::in_double(p["position.growth"]);
  std::vector<int64_t> group_of;
  for (int64_t h = 0; h < H; ++h) group_of.push_back(h / (H / G));
  const reference::Scores scores = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
    const auto g = group_of[h];
    const auto qs = q.accessor<double, 4>()[b][h][t], ks = k.accessor<double, 4>()[b][g][s];
    const auto lambdas = lambda.accessor<double, 2>()[lambda.size(0) == 1 ? 0 : g];
    double sum = 0;
    for (int64_t i = 0; i < K / 2; ++i) {
      const double angle = static_cast<double>(t - s) * std::exp(lambdas[i]);
      sum += std::cos(angle) * (qs[2 * i] * ks[2 * i] + qs[2 * i + 1] * ks[2 * i + 1]) +
             std::sin(angle) * (qs[2 * i] * ks[2 * i + 1] - qs[2 * i + 1] * ks[2 * i]);
    }
    const double beyond = std::max(0.0, std::log(static_cast<double>(t + 1) / static_cast<double>(L)));
    const double root = 1 + a[h].item<double>() * beyond;
    return sum * c[h].item<double>() * root * root / std::sqrt(static_cast<double>(K));
  };
  return reference::concatenate(reference::weigh_by(scores, x.size(1), v, group_of, sees), p["mix.weight"],
                                p["mix.bias"]);
}

Tensor scores_at(Attention& attention, const Tensor& x, const Tensor& positions) {
  Tensor scores;
  LambdaTap tap([](At at, Site) { return at == At::scores; }, [&](At, Site, Tensor value) { return scores = value; });
  Forward run;
  run.taps = {&tap};
  auto call = call_of(x, run);
  call.q_pos = call.k_pos = positions;
  attention.forward(call);
  return scores;
}

}  // namespace

TEST_CASE("adaptive rotary positions start as RoPE, for positions of all, of each text and of each head") {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    DefaultDtype guard(type);
    torch::NoGradGuard no_grad;
    RopeOptions rope_options;
    rope_options.base = 700;
    const auto shape = shape_of(4, 2, 8);
    Rope rope(rope_options, shape);
    const auto k = noise({3, 2, 5, 8}, "k"), q = noise({3, 4, 5, 8}, "q");
    const auto of_texts = torch::tensor({{0, 1, 2, 3, 4}, {7, 8, 9, 10, 11}, {0, 0, 0, 1, 2}}, torch::kLong);
    for (const std::string learn : {"frequencies", "base", "none"})
      for (const std::string share : {"kv_head", "layer"}) {
        INFO(learn << ", " << share);
        AdaRopeOptions options;
        options.base = 700;
        options.learn = learn;
        options.share = share;
        options.train_length = 4;  // a = 0: scores don't grow yet
        AdaRope own(options, shape);
        for (const auto& positions : {torch::arange(5), of_texts}) {
          CHECK(difference(own.rotate(k, positions), rope.rotate(k, positions)) < 1e-6);
          CHECK(difference(own.query(q, positions), rope.rotate(q, positions)) < 1e-6);
        }
        const auto of_heads = torch::stack({of_texts, of_texts + 1, of_texts * 2, of_texts + 30}, 1);  // [B,H,T]
        CHECK(difference(own.query(q, of_heads), rope.rotate(q, of_heads)) < 1e-5);
        CHECK(difference(own.rotate(k, of_heads.narrow(1, 1, 2)), rope.rotate(k, of_heads.narrow(1, 1, 2))) < 1e-5);
        CHECK(difference(own.query(q, of_heads), own.query(q, of_texts)) > 0.1);
      }
  }
}

TEST_CASE("learned frequencies and factors equal double loops over queries and keys") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const int64_t groups : {4, 2, 1})
    for (const std::string share : {"kv_head", "layer"})
      for (const bool is_causal : {true, false}) {
        INFO(groups << " groups, " << share);
        auto attention = make_attention(adaptive(
                                            [&](auto& own) {
                                              own.share = share;
                                              own.train_length = 5;
                                              own.growth = 0.4;
                                            },
                                            groups),
                                        D);
        CHECK(parameter(*attention, "position.log_frequency").size(0) == (share == "layer" ? 1 : groups));
        Visibility see;
        see.causal = is_causal;
        see.key_mask_BS = mask_of({T, 4}, T);
        const auto expected = by_loops(*attention, groups, 5, x, [&](int64_t b, int64_t, int64_t t, int64_t s) {
          return (!is_causal || s <= t) && (b == 0 || s < 4);
        });
        Forward run;
        CHECK(difference(attention->forward(call_of(x, run, see)), expected) < 1e-12);
      }
}

TEST_CASE("scores of learned frequencies depend on the distance alone") {
  torch::NoGradGuard no_grad;
  for (const std::string learn : {"frequencies", "base"}) {
    auto attention = make_attention(adaptive([&](auto& own) { own.learn = learn; }, 2), D);
    const auto x = noise({B, T, D}, "x");
    const auto here = scores_at(*attention, x, torch::arange(T));
    CHECK(difference(scores_at(*attention, x, torch::arange(T) + 300), here) < 1e-4);
    CHECK(difference(scores_at(*attention, x, torch::arange(T) * 3), here) > 1e-2);
  }
}

TEST_CASE("frequencies of 0 are no positions") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  auto attention = make_attention(adaptive(), D);
  parameter(*attention, "position.log_frequency").fill_(-std::numeric_limits<double>::infinity());
  parameter(*attention, "position.factor").fill_(1);
  auto plain_options = adaptive();
  plain_options.position.choose("none");
  auto plain = make_attention(plain_options, D);
  Forward run;
  CHECK(difference(attention->forward(call_of(x, run, causal())), plain->forward(call_of(x, run, causal()))) < 1e-14);
}

TEST_CASE("a table of one base a group is that base's RoPE, in each group its own") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  AdaRopeOptions options;
  options.learn = "base";
  const auto shape = shape_of(2, 2, 6);
  AdaRope own(options, shape);
  parameter(own, "log_base").copy_(torch::tensor({{std::log(30.0)}, {std::log(2000.0)}}));
  const auto k = noise({2, 2, 5, 6}, "k");
  const auto turned_k = own.rotate(k, torch::arange(5));
  RopeOptions first, second;
  first.base = 30;
  second.base = 2000;
  CHECK(difference(turned_k.select(1, 0), Rope(first, shape).rotate(k, torch::arange(5)).select(1, 0)) < 1e-13);
  CHECK(difference(turned_k.select(1, 1), Rope(second, shape).rotate(k, torch::arange(5)).select(1, 1)) < 1e-13);
}

TEST_CASE("gradients reach the log-frequencies of each table, and are those of differences") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(adaptive([](auto& own) { own.train_length = 3; }, 2), D);
  const auto x = noise({B, T, D}, "x"), weight = noise({B, T, D}, "weight");
  const auto loss = [&] {
    Forward run;
    return (attention->forward(call_of(x, run, causal())) * weight).sum();
  };
  loss().backward();
  const torch::NoGradGuard no_grad;
  for (const std::string name : {"log_frequency", "factor", "growth"}) {
    auto values = parameter(*attention, "position." + name);
    const auto gradient = values.grad().flatten();
    auto flat = values.view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      constexpr double step = 1e-6;
      flat[i] += step;
      const auto up = loss().item<double>();
      flat[i] -= 2 * step;
      const auto down = loss().item<double>();
      flat[i] += step;
      INFO(name << " " << i);
      CHECK(gradient[i].item<double>() == Approx((up - down) / (2 * step)).epsilon(1e-5).margin(1e-8));
      CHECK(std::abs(gradient[i].item<double>()) > 1e-6);
    }
  }
}

TEST_CASE("a growth of 0.1 is YaRN's temperature beyond the trained length, and 1 within it") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  AdaRopeOptions options;
  options.train_length = 64;
  options.growth = 0.1;
  AdaRope own(options, shape_of(1, 1, 2));
  const auto length_at = [&](int64_t position) {
    return own.query(torch::tensor({1.0, 0.0}).view({1, 1, 1, 2}), torch::tensor({position}, torch::kLong))
        .norm()
        .item<double>();
  };
  for (const int64_t n : {1, 2, 63, 64}) CHECK(length_at(n - 1) == Approx(1).epsilon(1e-14));
  for (const int64_t n : {65, 128, 512, 4096}) {
    const auto s = static_cast<double>(n) / 64;
    CHECK(length_at(n - 1) ==
          Approx(std::pow(0.1 * std::log(s) + 1, 2)).epsilon(1e-13));  // 1/t of sqrt(1/t) = 0.1 ln s + 1
  }
}

TEST_CASE("adaptive rotary positions add L (H_kv K/2 + 2 H) parameters") {
  for (const int64_t groups : {1, 2, 4}) {
    auto attention = small_attention();
    attention.head_width = 6;
    attention.project.choose("grouped");
    attention.project.as<GroupedProjectOptions>().groups = groups;
    auto plain = small_decoder_only(attention);
    plain.decoder.layers = 3;
    auto adapted = plain;
    adapted.decoder.attention.position.choose("adarope");
    adapted.decoder.attention.position.as<AdaRopeOptions>().train_length = 8;
    const auto count = [](const DecoderOnlyOptions& options) {
      return make_model(model_choice("decoder_only", options))->parameter_count();
    };
    CHECK(count(adapted) - count(plain) == 3 * (groups * 6 / 2 + 2 * small_heads));
    adapted.decoder.attention.position.as<AdaRopeOptions>().share = "layer";
    CHECK(count(adapted) - count(plain) == 3 * (6 / 2 + 2 * small_heads));
    adapted.decoder.attention.position.as<AdaRopeOptions>().learn = "none";
    CHECK(count(adapted) - count(plain) == 3 * 2 * small_heads);
  }
}

TEST_CASE("frequencies in half precision are of full precision, far positions included") {
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    AdaRopeOptions options;
    auto own = std::make_shared<AdaRope>(options, shape_of(2, 2, 8));
    const std::shared_ptr<torch::nn::Module> module = own;
    module->to(type);
    CHECK(own->frequencies().scalar_type() == torch::kFloat32);
    const auto x = noise({1, 2, 4, 8}, "x").to(type);
    const auto at = torch::tensor({0, 100, 4001, 30000}, torch::kLong);
    const auto y = own->query(x, at);
    CHECK(y.scalar_type() == type);
    DefaultDtype guard(torch::kFloat64);
    const auto exact = AdaRope(options, shape_of(2, 2, 8)).query(x.to(torch::kFloat64), at);
    // Rounding of the type, and of a logarithm of 32 bits: 9.2 * 6e-8 of an angle.
    CHECK(difference(y, exact) < (type == torch::kFloat16 ? 0.02 : 0.06));
  }
}

TEST_CASE("what adaptive rotary positions can't do is refused, with a way out") {
  CHECK_THROWS_WITH(AdaRope(AdaRopeOptions{}, shape_of(2, 2, 5)),
                    "position.adarope: expected an even head width, of pairs to turn, got 5");
  AdaRopeOptions head;
  head.share = "head";
  CHECK_THROWS_WITH(AdaRope(head, shape_of(4, 2, 4)),
                    ContainsSubstring("expected kv_head, layer or model where heads share keys"));
  CHECK_NOTHROW(AdaRope(head, shape_of(4, 4, 4)));
  auto cross = shape_of(2, 2, 4);
  cross->cross = true;
  CHECK_THROWS_WITH(AdaRope(AdaRopeOptions{}, cross), ContainsSubstring("share no positions"));

  const auto problems_of = [](const AttentionOptions& options) {
    Problems problems;
    attention_rules(options, D, false, "attention", problems);
    options.position.options().rules(problems);
    std::string all;
    for (const auto& problem : problems.found) all += problem.field + "|";
    return all;
  };
  CHECK(problems_of(adaptive()) == "");
  CHECK(problems_of(adaptive([](auto& own) { own.share = "head"; }, 2)) == "attention.position|");
  CHECK(problems_of(adaptive([](auto& own) { own.growth = 0.1; })) == "growth|");
  CHECK(problems_of(adaptive([](auto& own) {
          own.length_scale = false;
          own.train_length = 5;
        })) == "train_length|");
  auto mixed = adaptive();
  mixed.then.items.emplace_back(adapter_catalogue, "mix_heads");
  CHECK(problems_of(mixed) == "attention.position.share|");
  mixed.then.items.back().as<MixHeadsOptions>().mix = {"v"};
  CHECK(problems_of(mixed) == "");
  mixed.then.items.back().as<MixHeadsOptions>().mix = {"k"};
  for (const std::string share : {"layer", "model"}) {
    mixed.position.as<AdaRopeOptions>().share = share;
    CHECK(problems_of(mixed) == "");
  }
}

namespace {

/// Four heads of three pairs, over two groups.
AttentionOptions turning(const std::string& share) {
  return adaptive(
      [&](auto& own) {
        own.share = share;
        own.train_length = 3;
        own.growth = 0.3;
      },
      2);
}

Choice decoder_with(const AttentionOptions& attention, int64_t layers) {
  auto options = small_decoder_only(attention);
  options.decoder.layers = layers;
  return model_choice("decoder_only", options);
}

/// Models of several attentions that turn: those of a decoder, of an encoder, of an encoder of frames, and of both
/// stacks where the encoder has a width of its own.
std::vector<Choice> models_with(const AttentionOptions& attention) {
  auto both = small_encoder_decoder(attention);
  both.embedding.tie = "none";
  both.encoder.d_model = 16;
  return {decoder_with(attention, 3), model_choice("encoder_only", small_encoder_only(attention)),
          model_choice("frame_encoder", small_frame_encoder(attention)), model_choice("encoder_decoder", both)};
}

std::vector<const AdaRope*> turns_in(const Model& model) {
  std::vector<const AdaRope*> found;
  for (const auto& module : model.modules(/*include_self=*/false))
    if (const auto* position = dynamic_cast<const AdaRope*>(module.get())) found.push_back(position);
  return found;
}

/// By which angles the first head of each attention turns a position, where it has heads.
std::vector<Tensor> angles_in(const Model& model) {
  std::vector<Tensor> angles;
  for (const auto* position : turns_in(model))
    if (const auto of_heads = position->frequencies().detach(); of_heads.size(0) > 0)
      angles.push_back(of_heads[0].clone());
  return angles;
}

/// Of each attention that turns, which table it has: {0, 0, 1}.
std::vector<int64_t> tables_of(const Model& model) {
  std::vector<const void*> seen;
  std::vector<int64_t> tables;
  for (const auto* position : turns_in(model)) {
    const auto own = position->named_parameters(/*recurse=*/false);
    const auto* tensor = own.find("log_frequency") ? own.find("log_frequency") : own.find("log_base");
    const void* table = tensor ? static_cast<const void*>(tensor->unsafeGetTensorImpl()) : position;
    const auto place = std::find(seen.begin(), seen.end(), table) - seen.begin();
    if (place == static_cast<int64_t>(seen.size())) seen.push_back(table);
    tables.push_back(place);
  }
  return tables;
}

Batch batch_for(const Choice& choice) {
  auto batch = small_batch();
  if (choice.type() == "frame_encoder") batch.side["frames"] = noise({3, batch.target_BT.size(1), 5}, "frames");
  return batch;
}

void train_once(Model& model, const Batch& batch) {
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : trained_parameters(model)) parameters.push_back(parameter);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(0.05));
  logits_of(model, batch).square().sum().backward();
  adam.step();
  for (auto& parameter : parameters) parameter.mutable_grad() = Tensor();
}

int64_t count_of(const NamedParameters& parameters, const std::string& pattern) {
  return std::count_if(parameters.begin(), parameters.end(),
                       [&](const auto& one) { return one.first.find(pattern) != std::string::npos; });
}

}  // namespace

TEST_CASE("a model's one table is counted, drawn and trained once, and all its attentions turn alike after a step") {
  for (const std::string learn : {"frequencies", "base"}) {
    const auto with = [&](const std::string& share) {
      auto attention = turning(share);
      attention.position.as<AdaRopeOptions>().learn = learn;
      return models_with(attention);
    };
    const auto choices = with("model"), by_layer = with("layer");
    for (std::size_t i = 0; i < choices.size(); ++i) {
      INFO(choices[i].type() << ", " << learn);
      const auto model = make_model(choices[i]), apart = make_model(by_layer[i]);
      const auto several = static_cast<int64_t>(turns_in(*model).size());
      CHECK(several == (choices[i].type() == "decoder_only" ? 3 : choices[i].type() == "encoder_decoder" ? 4 : 2));
      CHECK(tables_of(*model) == std::vector<int64_t>(static_cast<std::size_t>(several), 0));
      CHECK(apart->parameter_count() - model->parameter_count() == (several - 1) * (learn == "base" ? 1 : K / 2));
      CHECK(count_of(trained_parameters(*model), "position.log_") == 1);
      CHECK(count_of(trained_parameters(*apart), "position.log_") == several);
      initialise(*model, 5);
      const auto start = angles_in(*model).front();
      CHECK(start[1].item<double>() == Approx(std::pow(10000.0, -2.0 / K)));
      train_once(*model, batch_for(choices[i]));
      train_once(*apart, batch_for(choices[i]));
      const auto learned = angles_in(*model), of_layers = angles_in(*apart);
      CHECK(difference(learned.front(), start) > 1e-4);
      for (const auto& angle : learned) CHECK(torch::equal(angle, learned.front()));
      CHECK_FALSE(torch::equal(of_layers[0], of_layers[1]));
    }
  }
}

TEST_CASE("the gradient of a model's one table is the sum over its attentions, and that of differences") {
  DefaultDtype guard(torch::kFloat64);
  const auto choices = models_with(turning("model")), by_layer = models_with(turning("layer"));
  for (std::size_t i = 0; i < choices.size(); ++i) {
    INFO(choices[i].type());
    const auto model = make_model(choices[i]), apart = make_model(by_layer[i]);
    copy_tensors(*model, *apart);
    apart->eval();
    const auto batch = batch_for(choices[i]);
    const auto loss = [&](Model& of) { return logits_of(of, batch).sin().sum(); };
    loss(*model).backward();
    loss(*apart).backward();
    auto sum = torch::zeros({1, K / 2});
    for (const auto* position : turns_in(*apart)) {
      const auto own = position->named_parameters()["log_frequency"].grad();
      CHECK(own.abs().min().item<double>() > 1e-7);
      sum += own;
    }
    const torch::NoGradGuard no_grad;
    CHECK(loss(*model).item<double>() == loss(*apart).item<double>());
    auto table = turns_in(*model).front()->named_parameters()["log_frequency"];
    CHECK(difference(table.grad(), sum) < 1e-11);
    for (int64_t pair = 0; pair < K / 2; ++pair) {
      constexpr double step = 1e-6;
      const auto at = [&](double change) {
        table[0][pair] += change;
        const auto value = loss(*model).item<double>();
        table[0][pair] -= change;
        return value;
      };
      const auto slope = (at(step) - at(-step)) / (2 * step);
      CHECK(table.grad()[0][pair].item<double>() == Approx(slope).epsilon(1e-5).margin(1e-7));
    }
  }
}

TEST_CASE("a clone has one table as the model has, and not the model's; so it is in half precision and after removal") {
  for (const auto& choice : models_with(turning("model"))) {
    INFO(choice.type());
    const auto model = make_model(choice);
    const auto batch = batch_for(choice);
    const auto one = tables_of(*model);
    for (const bool removed : {false, true}) {
      if (removed) {  // the first layer that has the table is gone
        auto kept = model->heads();
        kept.begin()->second.front() = {};
        kept.begin()->second.back() = {1, 2};
        model->keep(kept);
        CHECK(tables_of(*model) == one);
      }
      const auto before = logits_of(*model, batch).detach();
      const auto copy = std::dynamic_pointer_cast<Model>(model->clone());
      copy->eval();
      CHECK(torch::equal(logits_of(*copy, batch), before));
      CHECK(tables_of(*copy) == one);
      CHECK(copy->parameter_count() == model->parameter_count());
      train_once(*copy, batch);
      const auto learned = angles_in(*copy);
      for (const auto& angle : learned) CHECK(torch::equal(angle, learned.front()));
      CHECK_FALSE(torch::equal(learned.front(), angles_in(*model).front()));
      CHECK(torch::equal(logits_of(*model, batch), before));
      copy->to(torch::kBFloat16);
      CHECK(tables_of(*copy) == one);
      CHECK(angles_in(*copy).front().scalar_type() == torch::kFloat32);
    }
  }
}

TEST_CASE("layers share a table where their tables are alike, whatever else differs") {
  const auto with = [](const std::function<void(AttentionOptions&)>& change) {
    auto options = turning("model");
    change(options);
    return options;
  };
  auto options = small_decoder_only(turning("model"));
  options.decoder.layers = 8;
  const auto differs = [&](int64_t layer, const std::function<void(AttentionOptions&)>& change) {
    LayerOverride one;
    one.layers = {layer};
    one.attention = with(change);
    one.feed_forward = options.decoder.feed_forward;
    options.decoder.per_layer.push_back(one);
  };
  const auto position = [](AttentionOptions& a) -> AdaRopeOptions& { return a.position.as<AdaRopeOptions>(); };
  differs(1, [&](auto& a) { position(a).base = 500; });
  differs(2, [&](auto& a) { position(a).share = "layer"; });
  differs(3, [&](auto& a) { a.head_width = 4; });
  differs(4, [&](auto& a) {
    position(a).length_scale = false;
    position(a).train_length = std::nullopt;
    position(a).growth = 0;
    a.project.choose("standard");
    a.heads = 2;
  });
  differs(5, [&](auto& a) { position(a).base = 500; });
  differs(6, [&](auto& a) { position(a).learn = "base"; });
  differs(7, [&](auto& a) { position(a).learn = "none"; });
  const auto model = make_model(model_choice("decoder_only", options));
  CHECK(tables_of(*model) == std::vector<int64_t>{0, 1, 2, 3, 0, 1, 4, 5});
}

TEST_CASE("a model's one table is one tensor of a checkpoint, and comes back as one") {
  const Scratch scratch;
  for (const auto& choice : models_with(turning("model"))) {
    INFO(choice.type());
    const auto model = make_model(choice);
    auto kept = model->heads();
    kept.begin()->second.front() = {};
    model->keep(kept);
    save_checkpoint(scratch / "saved", {named_tensors(*model), {}, {}});
    const auto saved = load_checkpoint(scratch / "saved");
    std::set<const void*> tables;  // of all the names that the file gives it
    for (const auto& [name, tensor] : saved.model)
      if (name.find("position.log_frequency") != std::string::npos) tables.insert(tensor.data_ptr());
    CHECK(tables.size() == 1);
    const auto again = models().make(choice, small_context(kept));
    initialise(*again, 77);
    load_tensors(*again, saved.model, "saved");
    again->eval();
    CHECK(tables_of(*again) == tables_of(*model));
    CHECK(torch::equal(logits_of(*again, batch_for(choice)), logits_of(*model, batch_for(choice))));
  }
}

TEST_CASE("layers of an encoder of frames, those that heads unroll into and other mixers share a model's one table") {
  auto attention = turning("model");
  attention.project.choose("standard");
  auto deep = decoder_with(attention, 2);
  Problems problems;
  unroll_heads(deep, problems);
  REQUIRE(problems.found.empty());
  CHECK(tables_of(*make_model(deep)) == std::vector<int64_t>(8, 0));

  FrameCtcOptions frames;
  frames.d_model = small_width;
  frames.frame_width = 5;
  frames.encoder.choose("layers");
  frames.encoder.as<LayersReaderOptions>().attention = attention;
  const auto heard = make_model(model_choice("frame_ctc", frames));
  CHECK(tables_of(*heard) == std::vector<int64_t>{0, 0});
  CHECK(tables_of(*std::dynamic_pointer_cast<Model>(heard->clone())) == std::vector<int64_t>{0, 0});

  attention.head_width = std::nullopt;
  auto mixed = small_encoder_only(attention);
  mixed.encoder.mixer.choose("ngram_and_attention");
  mixed.encoder.mixer.as<NgramAndAttentionOptions>().heads = 2;
  CHECK(tables_of(*make_model(model_choice("encoder_only", mixed))) == std::vector<int64_t>{0, 0});
  mixed.encoder.mixer.choose("heads_by_length");  // whose attentions have heads of unlike width
  mixed.encoder.mixer.as<SeparateHeadsOptions>().heads = {2, 4};
  mixed.encoder.mixer.as<SeparateHeadsOptions>().thresholds = {4};
  CHECK(tables_of(*make_model(model_choice("encoder_only", mixed))) == std::vector<int64_t>{0, 1, 0, 1});
}

namespace {

/// A model made by hand, that nothing but its positions learns: head 0 is to look at the token before, head 1 at the
/// one earlier token whose content is what the query asks for. Both use all pairs: the angles by which the queries of
/// head 0 are turned are those at which RoPE finds distance 1, contents are random angles of each pair.
class TwoHeads {
 public:
  static constexpr int64_t pairs = 12, width = 2 * pairs, length = 256, trained = 64;

  explicit TwoHeads(const std::string& share) {
    AttentionOptions options;
    options.heads = 2;
    options.head_width = width;
    options.project.as<StandardProjectOptions>().bias = false;
    options.position.choose("adarope");
    auto& own = options.position.as<AdaRopeOptions>();
    own.base = 100;
    own.share = share;
    own.train_length = trained;
    attention_ = std::make_shared<Attention>(options, 2 * width + 1, 2 * width + 1, false);
    initialise(*attention_, 1);
    const torch::NoGradGuard no_grad;
    auto weight =
        parameter(*attention_, "project.weight");  // queries, keys and values, of 2 heads each; x = [content, asked, 1]
    weight.zero_();
    const auto size = std::sqrt(8.0);
    for (int64_t i = 0; i < pairs; ++i) {
      const auto w = std::pow(own.base, -static_cast<double>(i) / pairs);
      weight[2 * i][2 * width] = size * std::cos(w);
      weight[2 * i + 1][2 * width] = -size * std::sin(w);
      weight[2 * width + 2 * i][2 * width] = size;
    }
    for (int64_t i = 0; i < width; ++i) {
      weight[width + i][width + i] = size;  // asked
      weight[3 * width + i][i] = size;      // content
    }
  }

  struct Loss {
    Tensor before, match, found;  // of each head, and the share of matches that have the largest weight
  };
  /// Contents at distances of every magnitude alike, from 1 to the whole text.
  Loss loss(int64_t texts, const std::string& name) {
    const DefaultDtype guard(torch::kFloat32);
    const auto uniform = [&](at::IntArrayRef shape, const std::string& what) {
      return torch::empty(shape).uniform_(0, 1, named_generator(5, what + name));
    };
    const auto angle = uniform({texts, length, pairs}, "angle") * (2 * std::numbers::pi);
    const auto content = torch::stack({angle.cos(), angle.sin()}, -1).flatten(2);
    const auto place = torch::arange(length);
    const auto back = torch::pow(place + 1, uniform({texts, length}, "back")).floor().to(torch::kLong).clamp_min(1);
    const auto source = (place - back).clamp_min(0);
    const auto asked = content.gather(1, source.unsqueeze(-1).expand({-1, -1, width}));
    const auto x = torch::cat({content, asked, torch::ones({texts, length, 1})}, -1);
    Seen weights(At::weights);
    Forward run;
    run.taps = {&weights};
    attention_->forward(call_of(x, run, causal()));
    const auto log_weights = (weights.value() + 1e-30).log();  // [B,2,T,T]
    const auto before = -log_weights.select(1, 0).diagonal(-1, 1, 2).mean();
    const auto of_match = log_weights.select(1, 1).slice(1, 1), at = source.slice(1, 1).unsqueeze(-1);
    return {before, -of_match.gather(2, at).mean(), of_match.argmax(-1, true).eq(at).to(torch::kFloat).mean()};
  }
  void learn(int64_t steps) {
    std::vector<Tensor> own;
    for (auto& item : attention_->named_parameters())
      if (item.key().rfind("position.", 0) == 0)
        own.push_back(item.value());
      else
        item.value().set_requires_grad(false);
    torch::optim::Adam adam(own, torch::optim::AdamOptions(0.1));
    for (int64_t step = 0; step < steps; ++step) {
      adam.zero_grad();
      const auto now = loss(4, "train" + std::to_string(step));
      ((now.before + now.match) / 2).backward();
      adam.step();
    }
  }

 private:
  std::shared_ptr<Attention> attention_;
};

}  // namespace

TEST_CASE("on a frozen model of two unlike heads, frequencies of each head learn what a schedule that both share can't",
          "[paper-02][long]") {
  const auto learned = [](const std::string& share) {
    TwoHeads model(share);
    model.learn(200);
    const torch::NoGradGuard no_grad;
    const auto after = model.loss(16, "test");
    return std::make_pair((after.before + after.match).item<double>() / 2, after.found.item<double>());
  };
  const auto [own, own_found] = learned("kv_head");
  const auto [shared, shared_found] = learned("layer");
  INFO("loss " << own << " against " << shared << ", found " << own_found << " against " << shared_found);
  CHECK(own <= 0.5 * shared);
  CHECK(own_found >= 0.95);
}

}  // namespace headlab
