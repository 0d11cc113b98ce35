// 2310.07911: one query, key and value for all heads, told apart by vectors.
#include "modules/attention/project/head_embeddings.h"

#include "modules/attention/attention.h"
#include "modules/attention/project/standard.h"
#include "modules/tensor/relevance.h"
#include "tests/catch.h"
#include "tests/modules/attention/reference.h"
#include "tests/support/models.h"
#include "tests/support/parameters.h"

namespace headlab {
namespace {

constexpr int64_t B = 2, T = 6, D = 12, H = 3, K = D / H;

AttentionOptions embedded(const std::string& op, const std::string& position = "none", bool bias = false) {
  AttentionOptions options;
  options.heads = H;
  options.project.choose("head_embeddings");
  options.project.as<HeadEmbeddingsOptions>().op = op;
  options.project.as<HeadEmbeddingsOptions>().bias = bias;
  options.position.choose(position);
  return options;
}

Tensor forward(Attention& attention, const Tensor& x) {
  Forward run;
  return attention.forward(call_of(x, run, causal()));
}

int64_t numbers_of_project(const AttentionOptions& options, int64_t width) {
  return numbers_of(Attention(options, width, width, false), "project.");
}

/// x_B1TK -> x_BHTK, one number at a time.
Tensor with_vectors(const Tensor& x_B1TK, const Tensor& embedding_HK, bool adds) {
  const auto e = reference::in_double(embedding_HK);
  const auto xs = x_B1TK.accessor<double, 4>();
  const auto es = e.accessor<double, 2>();
  return reference::each({x_B1TK.size(0), e.size(0), x_B1TK.size(2), e.size(1)},
                         [&](int64_t b, int64_t h, int64_t t, int64_t i) {
                           const auto x = xs[b][0][t][i];
                           return adds ? x + es[h][i] : x + x * es[h][i];
                         });
}

std::shared_ptr<Project> make_project(const std::string& op, const Shape& shape) {
  Choice choice(project_catalogue, "head_embeddings");
  choice.as<HeadEmbeddingsOptions>().op = op;
  choice.as<HeadEmbeddingsOptions>().bias = true;
  auto project = projects().make(choice, shape);
  fill(*project);
  return project;
}

Shape shape_of_project() {
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = D;
  shape->head_width = shape->value_width = K;
  shape->original_heads = H;
  shape->heads = {0, 1, 2};
  return shape;
}

}  // namespace

TEST_CASE("heads by embeddings equal loops over numbers, added and multiplied, with positions and without") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const std::string op : {"add", "mul"})
    for (const std::string position : {"none", "rope"}) {
      INFO(op << ", " << position);
      auto attention = make_attention(embedded(op, position, true), D);
      const auto of = [&](const std::string& name) { return parameter(*attention, "project." + name); };
      const auto weight = of("memory_weight"), bias = of("memory_bias");
      const auto adds = op == "add";
      auto q =
          with_vectors(reference::project(x, of("query_weight"), of("query_bias"), K), of("query_embedding"), adds);
      auto k = with_vectors(reference::project(x, weight.narrow(0, 0, K), bias.narrow(0, 0, K), K), of("key_embedding"),
                            adds);
      const auto v = with_vectors(reference::project(x, weight.narrow(0, K, K), bias.narrow(0, K, K), K),
                                  of("value_embedding"), adds);
      if (position == "rope") {
        q = reference::rotate(q, 10000);
        k = reference::rotate(k, 10000);
      }
      const auto z =
          reference::weigh(q, k, v, {0, 1, 2}, 1 / std::sqrt(static_cast<double>(K)), reference::up_to_itself());
      const auto y = reference::concatenate(z, parameter(*attention, "mix.weight"), parameter(*attention, "mix.bias"));
      CHECK(difference(forward(*attention, x), y) < 1e-12);
    }
}

TEST_CASE("embeddings of zeros give as many heads alike") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  for (const std::string op : {"add", "mul"}) {
    auto attention = make_attention(embedded(op), D);
    for (const auto* name : {"query_embedding", "key_embedding", "value_embedding"})
      parameter(*attention, std::string("project.") + name).zero_();
    // The same matrices in each head of a projection that has them all.
    AttentionOptions plain;
    plain.heads = H;
    plain.project.as<StandardProjectOptions>().bias = false;
    auto standard = make_attention(plain, D);
    const auto memory = parameter(*attention, "project.memory_weight");
    parameter(*standard, "project.weight")
        .copy_(torch::cat({parameter(*attention, "project.query_weight").repeat({H, 1}),
                           memory.narrow(0, 0, K).repeat({H, 1}), memory.narrow(0, K, K).repeat({H, 1})}));
    for (const auto* name : {"mix.weight", "mix.bias"}) parameter(*standard, name).copy_(parameter(*attention, name));
    CHECK(difference(forward(*attention, x), forward(*standard, x)) < 1e-14);
    Tensor z_BHTK;
    LambdaTap tap([](At at, Site) { return at == At::z; }, [&](At, Site, Tensor z) { return z_BHTK = z; });
    Forward run;
    run.taps = {&tap};
    attention->forward(call_of(x, run, causal()));
    CHECK(difference(z_BHTK.select(1, 0), z_BHTK.select(1, 2)) < 1e-15);
  }
}

TEST_CASE("an added vector of keys never matters and gets no gradient, unless positions turn it or it multiplies") {
  DefaultDtype guard(torch::kFloat64);
  const auto x = noise({B, T, D}, "x"), weight = noise({B, T, D}, "loss"), other = noise({H, K}, "other");
  for (const std::string op : {"add", "mul"})
    for (const std::string position : {"none", "rope"}) {
      INFO(op << ", " << position);
      auto attention = make_attention(embedded(op, position), D);
      const auto before = forward(*attention, x);
      (before * weight).sum().backward();
      auto vector = parameter(*attention, "project.key_embedding");
      const auto gradient = vector.grad().abs().max().item<double>();
      torch::NoGradGuard no_grad;
      vector.copy_(other);
      const auto change = difference(forward(*attention, x), before);
      if (op == "add" && position == "none") {
        CHECK(change < 1e-14);
        CHECK(gradient < 1e-14);
      } else {
        CHECK(change > 1e-2);
        CHECK(gradient > 1e-2);
      }
    }
}

TEST_CASE("an added vector of values adds one constant to the output of every token") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  auto attention = make_attention(embedded("add", "rope"), D);
  const auto x = noise({B, T, D}, "x"), more = noise({H, K}, "more");
  const auto before = forward(*attention, x);
  parameter(*attention, "project.value_embedding").add_(more);
  const auto constant = torch::matmul(parameter(*attention, "mix.weight"), more.flatten());
  CHECK(difference(forward(*attention, x) - before, constant.expand({B, T, D})) < 1e-13);
}

TEST_CASE("of multiplied vectors of queries and keys the product alone counts, unless positions turn between them") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x"), by = noise({H, K}, "by").exp();
  for (const std::string position : {"none", "rope"}) {
    auto attention = make_attention(embedded("mul", position), D);
    const auto before = forward(*attention, x);
    auto query = parameter(*attention, "project.query_embedding"), key = parameter(*attention, "project.key_embedding");
    query.copy_((1 + query) * by - 1);
    key.copy_((1 + key) / by - 1);
    const auto change = difference(forward(*attention, x), before);
    if (position == "none")
      CHECK(change < 1e-13);
    else
      CHECK(change > 1e-2);
  }
}

TEST_CASE("12 heads of width 64 have 149,760 numbers by embeddings and 1,769,472 by matrices of their own") {
  const auto counts = [](int64_t n, int64_t d) {
    auto embeddings = embedded("mul");
    embeddings.heads = n;
    AttentionOptions standard;
    standard.heads = n;
    standard.project.as<StandardProjectOptions>().bias = false;
    auto single = standard;
    single.heads = 1;
    single.head_width = d;
    return std::array<int64_t, 3>{numbers_of_project(embeddings, n * d), numbers_of_project(standard, n * d),
                                  numbers_of_project(single, n * d)};
  };
  CHECK(counts(12, 64)[0] == 149760);
  CHECK(counts(12, 64)[1] == 1769472);
  for (const auto& [n, d] : std::vector<std::pair<int64_t, int64_t>>{{12, 64}, {8, 8}, {8, 16}}) {
    const auto [embeddings, standard, single] = counts(n, d);
    CHECK(embeddings - single == 3 * n * d);
    CHECK(standard - single == (3 * n * n - 3 * n) * d * d);
    CHECK(standard - embeddings == (3 * n * n - 3 * n) * d * d - 3 * n * d);
    if (n == 8) CHECK(5 * embeddings <= standard);  // at most a fifth
  }
  auto biased = embedded("add", "none", true);
  CHECK(numbers_of_project(biased, D) == 3 * K * D + 3 * D + 3 * K);
}

TEST_CASE("a cache keeps one key and one value, whatever the number of heads") {
  torch::NoGradGuard no_grad;
  for (const std::string op : {"add", "mul"}) {
    auto options = embedded(op, "rope");
    options.value_width = 5;
    auto attention = make_attention(options, D);
    CHECK(attention->cache_numbers() == K + 5);
    CHECK(make_attention(embedded(op), D)->cache_numbers() == 2 * K);
    for (const std::vector<int64_t>& kept : {std::vector<int64_t>{0, 1, 2}, {2}}) {
      attention->keep(kept);
      State state;
      Forward run;
      auto call = call_of(noise({B, T, D}, "x"), run, causal());
      call.state = &state;
      attention->forward(call);
      REQUIRE(state.stored.size() == 2);
      CHECK(shape_text(state.stored[0]) == "[2, 1, 6, 4]");
      CHECK(shape_text(state.stored[1]) == "[2, 1, 6, 5]");
      CHECK(attention->cache_numbers() == K + 5);
    }
  }
}

TEST_CASE("a removed head takes its vectors, and the shared matrices stay") {
  auto attention = make_attention(embedded("mul"), D);
  const auto vectors = parameter(*attention, "project.value_embedding").detach().clone();
  const auto whole = parameter(*attention, "project.memory_weight").detach().clone();
  attention->keep({2, 0});
  // Keys and values keep their order, and heads know theirs.
  CHECK(torch::equal(parameter(*attention, "project.value_embedding"), torch::stack({vectors[0], vectors[2]})));
  CHECK((attention->shape().group_of == std::vector<int64_t>{1, 0}));
  CHECK(torch::equal(parameter(*attention, "project.memory_weight"), whole));
  CHECK(shape_text(parameter(*attention, "project.query_embedding")) == "[2, 4]");
  attention->keep({});
  CHECK(parameter(*attention, "project.key_embedding").numel() == 0);
}

TEST_CASE("maps of queries, keys and values go into the matrices and added vectors, and never into multiplied ones") {
  DefaultDtype guard(torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto x = noise({B, T, D}, "x");
  const std::vector<Tensor> maps{noise({K, K}, "q"), Tensor(), noise({K, K}, "v")};
  for (const std::string op : {"add", "mul"}) {
    const auto project = make_project(op, shape_of_project());
    const auto pass = [&] {
      const auto kv = project->read(project->remember(x));
      return std::vector<Tensor>{project->query(x, {}), kv[0], kv[1]};
    };
    const auto before = pass();
    CHECK(project->absorb(maps) == (op == "add"));
    const auto after = pass();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto expected = op == "add" && maps[i].defined() ? torch::matmul(before[i], maps[i]) : before[i];
      CHECK(difference(after[i], expected) < 1e-13);
    }
  }
}

TEST_CASE("vectors start as noise of the stated deviation, and matrices as one head's of many would") {
  auto options = embedded("add");
  options.heads = 64;
  options.head_width = options.value_width = 64;
  for (const double deviation : {0.0, 0.02, 0.5}) {
    options.project.as<HeadEmbeddingsOptions>().deviation = deviation;
    const auto held = std::make_shared<Attention>(options, 128, 128, false);
    auto& attention = *held;
    initialise(attention, 3);
    for (const auto* name : {"query_embedding", "key_embedding", "value_embedding"}) {
      const auto vectors = parameter(attention, std::string("project.") + name);
      CHECK(vectors.std().item<double>() == Approx(deviation).epsilon(0.05).margin(1e-12));
      CHECK(std::abs(vectors.mean().item<double>()) <= 0.05 * deviation);
    }
    const auto bound = std::sqrt(6.0 / (128 + 64 * 64));
    CHECK(parameter(attention, "project.query_weight").abs().max().item<double>() == Approx(bound).epsilon(0.01));
  }
}

TEST_CASE("the shared projection costs what one head's does") {
  const Attention attention(embedded("mul"), D, D, false);
  AttentionOptions plain;
  plain.heads = H;
  const Attention standard(plain, D, D, false);
  CHECK(standard.flops(T, T, true) - attention.flops(T, T, true) == 2 * T * D * 3 * K * (H - 1));
}

TEST_CASE("relevance flows through heads by embeddings") {
  DefaultDtype guard(torch::kFloat64);
  for (const std::string op : {"add", "mul"}) {
    auto attention = make_attention(embedded(op), D);
    const auto x = noise({B, T, D}, "x").requires_grad_();
    const auto plain = forward(*attention, x);
    const relevance::Guard flows;
    const auto y = forward(*attention, x);
    CHECK(difference(y, plain) < 1e-13);
    CHECK(relevance::uncovered(y).empty());
  }
}

}  // namespace headlab
