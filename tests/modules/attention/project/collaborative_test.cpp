// 2006.16362: heads that share the dimensions of queries and keys.
#include "modules/attention/project/collaborative.h"

#include "modules/attention/attention.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/tensor/relevance.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/parameters.h"
#include "tests/support/taps.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 6, D = 12, H = 3, K = 6, V = 4;

AttentionOptions shared(const std::string& init = "normal", const std::string& position = "none") {
  AttentionOptions options;
  options.heads = H;
  options.head_width = K;
  options.value_width = V;
  options.project.choose("collaborative");
  options.project.as<CollaborativeOptions>().init = init;
  options.position.choose(position);
  return options;
}

Tensor forward(Attention& attention, const Tensor& x, const Tensor& places = {}) {
  Forward run;
  auto call = call_of(x, run, causal());
  if (places.defined()) call.q_pos = call.k_pos = places;
  return attention.forward(call);
}

}  // namespace

TEST_CASE("collaborative heads equal loops over numbers: (x W_Q) diag(m) (x W_K)^T + x c, divided") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const std::optional<double> divide_by : {std::optional<double>{}, std::optional<double>{1.7}})
    for (const bool content_bias : {true, false}) {
      auto options = shared();
      options.project.as<CollaborativeOptions>().divide_by = divide_by;
      options.project.as<CollaborativeOptions>().content_bias = content_bias;
      auto attention = make_attention(options, D);
      const auto of = [&](const std::string& name) { return parameter(*attention, "project." + name); };
      const auto q = reference::project(x, of("query_weight"), {}, K),
                 k = reference::project(x, of("key_weight"), {}, K);
      const auto v = reference::project(x, of("value_weight"), of("value_bias"), V);
      const auto c = content_bias ? reference::project(x, of("content"), {}, 1) : torch::zeros({B, H, T, 1});
      const auto m = reference::in_double(of("mix"));
      const auto by = divide_by.value_or(std::sqrt(static_cast<double>(K) / H));
      const auto scores = [&](int64_t b, int64_t h, int64_t t, int64_t s) {
        double sum = c[b][h][s][0].item<double>();
        for (int64_t i = 0; i < K; ++i)
          sum += q[b][0][t][i].item<double>() * m[h][i].item<double>() * k[b][0][s][i].item<double>();
        return sum / by;
      };
      const auto z = reference::weigh_by(scores, T, v, {0, 1, 2}, reference::up_to_itself());
      const auto y = reference::concatenate(z, parameter(*attention, "mix.weight"), parameter(*attention, "mix.bias"));
      CHECK(difference(forward(*attention, x), y) < 1e-12);
    }
}

TEST_CASE("collaborative heads with ones in blocks and the right content bias are heads side by side, biases and all") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  constexpr int64_t d = 4;
  AttentionOptions plain;
  plain.heads = H;
  auto standard = make_attention(plain, D);
  auto options = shared("blocks");
  options.head_width = H * d;
  const auto made = std::make_shared<Attention>(options, D, D, false);
  auto& attention = *made;
  initialise(attention, 1);
  attention.eval();
  const auto rows = parameter(*standard, "project.weight").split(D),
             biases = parameter(*standard, "project.bias").split(D);
  const auto write = [&](const std::string& name, const Tensor& value) { parameter(attention, name).copy_(value); };
  write("project.query_weight", rows[0]);
  write("project.key_weight", rows[1]);
  write("project.value_weight", rows[2]);
  write("project.value_bias", biases[2]);
  for (int64_t h = 0; h < H; ++h)  // c_h = W_K^h b_Q^h; the keys' own bias goes nowhere
    parameter(attention, "project.content")[h].copy_(
        torch::matmul(biases[0].narrow(0, h * d, d), rows[1].narrow(0, h * d, d)));
  for (const auto* name : {"mix.weight", "mix.bias"}) write(name, parameter(*standard, name));
  CHECK(difference(forward(attention, x), forward(*standard, x)) < 1e-14);
  parameter(attention, "project.content").zero_();
  CHECK(difference(forward(attention, x), forward(*standard, x)) > 1e-3);
}

TEST_CASE("collaborative queries and keys have 2 D K + H K + H D numbers, and scores cost H T^2 K") {
  const auto counts = [](int64_t width, int64_t heads, int64_t head_width) {
    auto options = shared();
    options.heads = heads;
    options.head_width = head_width;
    options.value_width = width / heads;
    return numbers_of(Attention(options, width, width, false), "project.") - width * width -
           width;  // without the values
  };
  CHECK(counts(512, 8, 128) == 2 * 512 * 128 + 8 * 128 + 8 * 512);
  CHECK(counts(768, 12, 192) == 2 * 768 * 192 + 12 * 192 + 12 * 768);
  // The keys of a Transformer-base at a quarter of their width: 4 times fewer numbers in the two matrices.
  CHECK(4 * (counts(512, 8, 128) - 8 * 128 - 8 * 512) == 2 * 512 * 512);

  const auto cost = [](int64_t head_width) {
    auto options = shared();
    options.head_width = head_width;
    options.project.as<CollaborativeOptions>().content_bias = false;
    const Attention attention(options, D, D, false);
    return attention.flops(T, T, false) - 2 * 2 * T * D * head_width;  // without x W_Q and x W_K
  };
  CHECK(cost(7) - cost(6) == 2 * H * T * T);
  // As wide as all heads side by side, scores cost H times theirs.
  AttentionOptions plain;
  plain.heads = H;
  const Attention standard(plain, D, D, false);
  const auto scores_of_standard =
      standard.flops(T, T, false) - 2 * T * D * 3 * D - 2 * T * D * D - 2 * H * T * T * (D / H);
  CHECK(cost(D) - cost(1) + 2 * H * T * T == H * scores_of_standard);
}

TEST_CASE("a cache keeps one shared key, each head's value and content bias") {
  torch::NoGradGuard no_grad;
  for (const bool content_bias : {true, false}) {
    auto options = shared("normal", "rope");
    options.project.as<CollaborativeOptions>().content_bias = content_bias;
    auto attention = make_attention(options, D);
    CHECK(attention->cache_numbers() == K + H * V + (content_bias ? H : 0));
    State state;
    Forward run;
    auto call = call_of(noise({B, T, D}, "x"), run, causal());
    call.state = &state;
    attention->forward(call);
    int64_t numbers = 0;
    for (const auto& stored : state.stored) numbers += stored.size(1) * stored.size(3);
    CHECK(numbers == attention->cache_numbers());
    CHECK(shape_text(state.stored[0]) == "[2, 1, 6, 6]");
    attention->keep({2});
    CHECK(attention->cache_numbers() == K + V + (content_bias ? 1 : 0));
  }
}

TEST_CASE("collaborative keys are read as one by all heads, without a copy") {
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = D;
  shape->head_width = K;
  shape->value_width = V;
  shape->original_heads = H;
  shape->heads = {0, 1, 2};
  const auto project = std::make_shared<Collaborative>(CollaborativeOptions(), shape);
  initialise(*project, 1);
  const auto stored = project->remember(noise({B, T, D}, "x"));
  const auto kv = project->read(stored);
  CHECK(shape_text(kv[0]) == "[2, 3, 6, 6]");
  CHECK(kv[0].data_ptr() == stored[0].data_ptr());
  CHECK(kv[0].stride(1) == 0);
}

TEST_CASE("collaborative heads start from normal numbers, ones in blocks, or alike") {
  torch::NoGradGuard no_grad;
  auto many = shared();
  many.heads = 64;
  many.head_width = 128;
  for (const double deviation : {0.2, 0.5}) {
    many.project.as<CollaborativeOptions>().deviation = deviation;
    const auto made = std::make_shared<Attention>(many, D, D, false);
    auto& attention = *made;
    initialise(attention, 2);
    CHECK(parameter(attention, "project.mix").std().item<double>() == Approx(deviation).epsilon(0.05));
    CHECK(std::abs(parameter(attention, "project.mix").mean().item<double>()) < 0.02);
    CHECK(parameter(attention, "project.content").count_nonzero().item<int64_t>() == 0);
    CHECK(parameter(attention, "project.query_weight").abs().max().item<double>() ==
          Approx(std::sqrt(6.0 / (D + 128))).epsilon(0.02));
  }
  const auto blocks = std::make_shared<Attention>(shared("blocks"), D, D, false,
                                                  std::vector<int64_t>{0, 2});  // head 2 has its own block
  initialise(*blocks, 2);
  CHECK(torch::equal(parameter(*blocks, "project.mix"),
                     torch::tensor({1., 1., 0., 0., 0., 0., 0., 0., 0., 0., 1., 1.}).view({2, 6})));
  const auto ones = std::make_shared<Attention>(shared("ones"), D, D, false);
  initialise(*ones, 2);
  ones->eval();
  Seen weights(At::weights);
  Forward run;
  run.taps = {&weights};
  ones->forward(call_of(noise({B, T, D}, "x"), run, causal()));
  CHECK(torch::equal(weights.value().select(1, 0), weights.value().select(1, 2)));
}

TEST_CASE("positions that turn shared dimensions speak of distance alone") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), places = torch::arange(T);
  auto attention = make_attention(shared("normal", "rope"), D);
  CHECK(difference(forward(*attention, x, places), forward(*attention, x, places + 1000)) < 1e-10);
  CHECK(difference(forward(*attention, x, places), forward(*attention, x, places * 2)) > 1e-3);
}

TEST_CASE("a removed collaborative head takes its mix, content bias and values") {
  auto attention = make_attention(shared(), D);
  const auto before = [&](const std::string& name) {
    return parameter(*attention, "project." + name).detach().clone();
  };
  const auto mix = before("mix"), content = before("content"), values = before("value_weight"),
             keys = before("key_weight");
  attention->keep({2, 0});
  CHECK(torch::equal(parameter(*attention, "project.mix"), torch::stack({mix[2], mix[0]})));
  CHECK(torch::equal(parameter(*attention, "project.content"), torch::stack({content[2], content[0]})));
  CHECK(torch::equal(parameter(*attention, "project.value_weight"),
                     torch::cat({values.narrow(0, 0, V), values.narrow(0, 2 * V, V)})));
  CHECK(torch::equal(parameter(*attention, "project.key_weight"), keys));
}

TEST_CASE("without a content bias collaborative heads learn in LibTorch's fused kernel, with one they answer in it") {
  for (const bool content_bias : {true, false}) {
    auto options = shared();
    options.project.as<CollaborativeOptions>().content_bias = content_bias;
    auto attention = make_attention(options, D);
    const Forward run;
    CHECK(attention->fusable({Stack::dec_self, 0}, run) == !content_bias);
    torch::NoGradGuard no_grad;
    CHECK(attention->fusable({Stack::dec_self, 0}, run));
  }
}

TEST_CASE("blocks need heads that divide the shared width, and one place says what scores are divided by") {
  const auto problems_of = [](const AttentionOptions& options) {
    Problems problems;
    attention_rules(options, D, false, "attention", problems);
    return problems.found;
  };
  CHECK(problems_of(shared("blocks")).empty());
  auto uneven = shared("blocks");
  uneven.head_width = 7;
  REQUIRE(problems_of(uneven).size() == 1);
  CHECK(problems_of(uneven)[0].field == "attention.project.init");
  CHECK_THROWS_AS(Attention(uneven, D, D, false), ShapeError);
  uneven.project.as<CollaborativeOptions>().init = "normal";
  CHECK(problems_of(uneven).empty());
  auto twice = shared();
  twice.weigh.score.as<DotProductOptions>().scale = 1.0;
  REQUIRE(problems_of(twice).size() == 1);
  CHECK(problems_of(twice)[0].field == "attention.weigh.score.scale");
}

TEST_CASE("relevance flows through collaborative heads") {
  DefaultDtype guard(torch::kFloat64);
  auto attention = make_attention(shared(), D);
  const auto x = noise({B, T, D}, "x").requires_grad_();
  const auto plain = forward(*attention, x);
  const relevance::Guard flows;
  const auto y = forward(*attention, x);
  CHECK(difference(y, plain) < 1e-13);
  CHECK(relevance::uncovered(y).empty());
}

}  // namespace headlab
