// 2607.19363: rotary positions whose frequencies, and factors of the scores, each head learns.
#include "modules/attention/position/adarope.h"

#include <torch/optim/adam.h>

#include <numbers>

#include "modules/attention/position/rope.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/standard.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"

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
  const auto rows = [&](const std::string& name, int64_t from, int64_t count) { return p[name].narrow(0, from, count); };
  const auto q = reference::project(x, rows("project.weight", 0, H * K), rows("project.bias", 0, H * K), K);
  const auto k = reference::project(x, rows("project.weight", H * K, G * K), rows("project.bias", H * K, G * K), K);
  const auto v = reference::project(x, rows("project.weight", (H + G) * K, G * K), rows("project.bias", (H + G) * K, G * K), K);
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
  return reference::concatenate(reference::weigh_by(scores, x.size(1), v, group_of, sees), p["mix.weight"], p["mix.bias"]);
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
    return own.query(torch::tensor({1.0, 0.0}).view({1, 1, 1, 2}), torch::tensor({position}, torch::kLong)).norm().item<double>();
  };
  for (const int64_t n : {1, 2, 63, 64}) CHECK(length_at(n - 1) == Approx(1).epsilon(1e-14));
  for (const int64_t n : {65, 128, 512, 4096}) {
    const auto s = static_cast<double>(n) / 64;
    CHECK(length_at(n - 1) == Approx(std::pow(0.1 * std::log(s) + 1, 2)).epsilon(1e-13));  // 1/t of sqrt(1/t) = 0.1 ln s + 1
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
  CHECK_THROWS_WITH(AdaRope(AdaRopeOptions{}, shape_of(2, 2, 5)), "position.adarope: expected an even head width, of pairs to turn, got 5");
  AdaRopeOptions head;
  head.share = "head";
  CHECK_THROWS_WITH(AdaRope(head, shape_of(4, 2, 4)), ContainsSubstring("expected kv_head or layer where heads share keys"));
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
  mixed.position.as<AdaRopeOptions>().share = "layer";
  CHECK(problems_of(mixed) == "");
}

namespace {

/// A model made by hand, that nothing but its positions learns: head 0 is to look at the token before, head 1 at the one
/// earlier token whose content is what the query asks for. Both use all pairs: the angles by which the queries of head 0 are
/// turned are those at which RoPE finds distance 1, contents are random angles of each pair.
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
    auto weight = parameter(*attention_, "project.weight");  // queries, keys and values, of 2 heads each; x = [content, asked, 1]
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
    Tensor weights;
    LambdaTap tap([](At at, Site) { return at == At::weights; }, [&](At, Site, Tensor value) { return weights = value; });
    Forward run;
    run.taps = {&tap};
    attention_->forward(call_of(x, run, causal()));
    const auto log_weights = (weights + 1e-30).log();  // [B,2,T,T]
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

TEST_CASE("on a frozen model of two unlike heads, frequencies of each head learn what a schedule that both share can't", "[paper-02][long]") {
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
