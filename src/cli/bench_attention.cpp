#include "src/cli/bench_attention.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "modules/attention/attention.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/base/error.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

/// Two ways to the same work. `a` and `b` do it once; `difference` is the largest one between their answers, or between
/// b's and those of a plain way to compute them where a does other work.
struct Pair {
  std::string what_a, what_b;
  std::function<void()> a, b;
  std::function<double()> difference;
  std::function<std::pair<int64_t, int64_t>()> cache_bytes{};  // of a and of b; absent: nothing is cached
};

struct BenchCase {
  const char* name;
  const char* summary;
  double goal;  // the most that b's time may be of a's
  Pair (*make)();
};

Tensor noise(at::IntArrayRef shape, const std::string& name) {
  return torch::empty(shape).normal_(0, 1, named_generator(1, name));
}

std::shared_ptr<Attention> attention_of(const AttentionOptions& options, int64_t width) {
  auto attention = std::make_shared<Attention>(options, width, width, false);
  initialise(*attention, 1);
  attention->eval();
  return attention;
}

AttentionCall call_of(const Tensor& x_BTD, Forward& run, bool causal) {
  AttentionCall call{.site = {Stack::dec_self, 0},
                     .x_BTD = x_BTD,
                     .memory_BSD = x_BTD,
                     .q_pos = torch::arange(x_BTD.size(1)),
                     .k_pos = torch::arange(x_BTD.size(1)),
                     .see = {},
                     .state = nullptr,
                     .run = run};
  call.see.causal = causal;
  return call;
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Half of 8 heads removed against all of them: forward, projections and all.
Pair pruned() {
  constexpr int64_t width = 512, heads = 8, T = 256, B = 16;
  AttentionOptions options;
  options.heads = heads;
  const auto full = attention_of(options, width), half = std::dynamic_pointer_cast<Attention>(full->clone());
  half->eval();
  const std::vector<int64_t> kept{0, 2, 5, 7};
  half->keep(kept);
  const auto x = noise({B, T, width}, "x");
  const auto pass = [x](const std::shared_ptr<Attention>& attention, std::map<Stack, Tensor> scale) {
    const torch::NoGradGuard no_grad;
    Forward run;
    run.scale = std::move(scale);
    return attention->forward(call_of(x, run, false));
  };
  return {"8 heads", "4 of them left", [=] { pass(full, {}); }, [=] { pass(half, {}); },
          [=] {
            auto mask = torch::zeros({1, heads});
            for (const auto head : kept) mask[0][head] = 1;
            return largest_difference(pass(full, {{Stack::dec_self, mask}}), pass(half, {}));
          }};
}

/// Windows against fused full causal attention, forward and backward, without projections; window_H as a plan's.
Pair windows(const std::vector<int64_t>& window_H, const std::string& what) {
  constexpr int64_t T = 4096, K = 64;
  const auto H = static_cast<int64_t>(window_H.size());
  auto shape = std::make_shared<AttentionShape>();
  shape->width = shape->memory_width = H * K;
  shape->head_width = shape->value_width = K;
  shape->original_heads = H;
  for (int64_t h = 0; h < H; ++h) shape->heads.push_back(h);
  set_groups(*shape, H);
  const auto weigh = std::make_shared<Weigh>(WeighOptions(), shape);
  const auto q = noise({1, H, T, K}, "q").requires_grad_(), k = noise({1, H, T, K}, "k").requires_grad_(),
             v = noise({1, H, T, K}, "v").requires_grad_(), upstream = noise({1, H, T, K}, "dz");
  const auto group_of = shape->group_of;
  const auto pass = [=](const std::vector<int64_t>& window) {
    Forward run;
    const auto x = torch::zeros({1, T, H * K});
    HeadPlan plan;
    plan.window_H = window;
    const auto z = weigh->forward(q, k, v, group_of, plan, {}, call_of(x, run, true), /*from_start=*/true);
    auto results = torch::autograd::grad({z}, {q, k, v}, {upstream});
    results.insert(results.begin(), z.detach());
    return results;
  };
  const auto difference = [=] {
    const auto made = pass(window_H);
    double largest = 0;
    for (int64_t h = 0; h < H; ++h) {  // head by head, with a mask
      const auto place = torch::arange(T);
      const auto back = place.unsqueeze(1) - place;
      auto mask = back.ge(0);
      if (window_H[h] > 0) mask = mask.logical_and(back.lt(window_H[h]));
      const auto of_head = [&](const Tensor& t) { return t.narrow(1, h, 1); };
      const auto z = at::scaled_dot_product_attention(of_head(q), of_head(k), of_head(v), mask);
      auto plain = torch::autograd::grad({z}, {q, k, v}, {of_head(upstream)});
      largest = std::max(largest, largest_difference(z, of_head(made[0])));
      for (std::size_t i = 0; i < 3; ++i)
        largest = std::max(largest, largest_difference(of_head(plain[i]), of_head(made[i + 1])));
    }
    return largest;
  };
  return {std::to_string(H) + " heads that see all before them", what,
          [=] { pass(std::vector<int64_t>(window_H.size(), 0)); }, [=] { pass(window_H); }, difference};
}
Pair narrow() { return windows(std::vector<int64_t>(8, 128), "windows of 128"); }
Pair half_narrow() { return windows({128, 128, 128, 128, 0, 0, 0, 0}, "half of them with windows of 128"); }

/// A router that gives each token 4 of 16 heads over shared keys and values against 4 plain heads of the same width,
/// forward and backward, projections and all.
Pair routing() {
  constexpr int64_t width = 512, K = 128, T = 256, B = 16, experts = 16, chosen = 4;
  AttentionOptions plain_options, routed_options;
  plain_options.heads = chosen;
  plain_options.head_width = routed_options.head_width = K;
  routed_options.heads = experts;
  routed_options.project.choose("experts");
  routed_options.mix.choose("experts");
  Choice router(gate_catalogue, "route_experts");
  router.as<RouteExpertsOptions>().k = chosen;
  routed_options.gates.items = {router};
  const auto plain = attention_of(plain_options, width), routed = attention_of(routed_options, width);
  {
    const torch::NoGradGuard no_grad;
    routed->named_parameters()["gate0.weight"].normal_(0, 0.05, named_generator(1, "router"));
  }
  const auto x = noise({B, T, width}, "x").requires_grad_(), upstream = noise({B, T, width}, "dy");
  const auto pass = [=](const std::shared_ptr<Attention>& attention) {
    Forward run;
    const auto y = attention->forward(call_of(x, run, true));
    auto inputs = attention->parameters();
    inputs.push_back(x);
    auto results = torch::autograd::grad({y}, inputs, {upstream}, std::nullopt, false, /*allow_unused=*/true);
    return std::pair(y.detach(), results.back());
  };
  const auto difference = [=] {
    // All 16 heads for every token, those that are not chosen with the weight 0.
    const auto of = routed->named_parameters();
    const auto p = torch::softmax(torch::matmul(x, of["gate0.weight"].t()), -1);
    const auto [value, index] = torch::topk(p, chosen, -1);
    const auto weight = torch::zeros_like(p).scatter(-1, index, value / value.sum(-1, true).detach());
    const auto q = torch::einsum("btd,edk->betk", {x, of["project.query_weight"]});
    const auto k = torch::matmul(x, of["project.key_weight"].t()).unsqueeze(1).expand({-1, experts, -1, -1});
    const auto v = torch::matmul(x, of["project.value_weight"].t()).unsqueeze(1).expand({-1, experts, -1, -1});
    const auto z = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    const auto y = torch::einsum("betk,ekd,bte->btd", {z, of["mix.weight"], weight});
    const auto gradient = torch::autograd::grad({y}, {x}, {upstream}).front();
    const auto made = pass(routed);
    return std::max(largest_difference(y, made.first), largest_difference(gradient, made.second));
  };
  return {"4 heads", "4 of 16 heads, chosen token by token", [=] { pass(plain); }, [=] { pass(routed); }, difference};
}

/// 8 plain heads, and as many of native_sparse of which each token picks 2.
std::pair<std::shared_ptr<Attention>, std::shared_ptr<Attention>> plain_and_sparse(int64_t width) {
  AttentionOptions options;
  options.position.choose("rope");
  const auto plain = attention_of(options, width);
  options.gates.items.emplace_back(gate_catalogue, "native_sparse");
  return {plain, attention_of(options, width)};
}

/// Forward and backward, projections and all.
Pair native_sparse(int64_t B, int64_t T) {
  constexpr int64_t width = 512;
  const auto [plain, sparse] = plain_and_sparse(width);
  const auto x = noise({B, T, width}, "x").requires_grad_(), upstream = noise({B, T, width}, "dy");
  const auto pass = [=](const std::shared_ptr<Attention>& attention, bool masked) {
    Forward run;
    auto call = call_of(x, run, true);
    if (masked)
      call.see.allowed_BTS = torch::ones({T, T}, torch::kBool);  // any mask: all heads of all tokens are computed
    const auto y = attention->forward(call);
    auto inputs = attention->parameters();
    inputs.push_back(x);
    auto results = torch::autograd::grad({y}, inputs, {upstream}, std::nullopt, false, /*allow_unused=*/true);
    results.push_back(y.detach());
    return results;
  };
  const auto difference = [pass, sparse = sparse] {
    const auto packed = pass(sparse, false), masked = pass(sparse, true);
    double largest = 0;
    for (std::size_t i = 0; i < packed.size(); ++i)
      if (packed[i].defined())
        largest = std::max(
            largest, largest_difference(packed[i], masked[i]) / std::max(1.0, masked[i].abs().max().item<double>()));
    return largest;
  };
  return {"8 heads", "2 of 8 heads a token", [pass, plain = plain] { pass(plain, false); },
          [pass, sparse = sparse] { pass(sparse, false); }, difference};
}
Pair native_sparse_512() { return native_sparse(4, 512); }
Pair native_sparse_2048() { return native_sparse(1, 2048); }

/// A text of 2,048 tokens, one after another.
Pair native_sparse_decoding() {
  constexpr int64_t width = 512, T = 2048;
  const auto [plain, sparse] = plain_and_sparse(width);
  const auto x = noise({1, T, width}, "x");
  const auto decode = [=](const std::shared_ptr<Attention>& attention, State& state) {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> parts;
    for (int64_t t = 0; t < T; ++t) {
      Forward run;
      auto call = call_of(x.narrow(1, t, 1), run, true);
      call.q_pos = call.k_pos = torch::arange(t, t + 1);
      call.state = &state;
      parts.push_back(attention->forward(call));
    }
    return torch::cat(parts, 1);
  };
  const auto difference = [=, sparse = sparse] {
    const torch::NoGradGuard no_grad;
    Forward run;
    auto call = call_of(x, run, true);
    call.see.allowed_BTS = torch::ones({T, T}, torch::kBool);
    State state;
    return largest_difference(sparse->forward(call), decode(sparse, state));
  };
  const auto cached = [decode](const std::shared_ptr<Attention>& attention) {
    State state;
    decode(attention, state);
    int64_t bytes = 0;
    for (const auto& tensor : state.stored) bytes += static_cast<int64_t>(tensor.nbytes());
    return bytes;
  };
  const auto once = [decode](const std::shared_ptr<Attention>& attention) {
    State state;
    decode(attention, state);
  };
  return {"8 heads",
          "2 of 8 heads a token",
          [once, plain = plain] { once(plain); },
          [once, sparse = sparse] { once(sparse); },
          difference,
          [cached, plain = plain, sparse = sparse] { return std::pair(cached(plain), cached(sparse)); }};
}

const std::vector<BenchCase>& bench_cases() {
  static const std::vector<BenchCase> all{
      {"pruned", "half of 8 heads removed: width 512, 256 tokens, batch 16, forward", 0.6, pruned},
      {"windows", "all 8 heads see 128 of 4,096 tokens: against fused causal attention, forward and backward", 1.0 / 6,
       narrow},
      {"half-windows", "half of 8 heads see 128 of 4,096 tokens: against fused causal attention, forward and backward",
       0.65, half_narrow},
      {"routing",
       "4 of 16 heads of width 128 a token: against 4 plain ones, width 512, 256 tokens, batch 16, forward and "
       "backward",
       1.3, routing},
      {"native-sparse-512",
       "2 of 8 heads a token: against 8 plain ones, width 512, 512 tokens, batch 4, forward and backward", 0.5,
       native_sparse_512},
      {"native-sparse-2048",
       "2 of 8 heads a token: against 8 plain ones, width 512, 2,048 tokens, forward and backward", 0.35,
       native_sparse_2048},
      {"native-sparse-decoding", "2 of 8 heads a token: against 8 plain ones, width 512, 2,048 tokens one by one", 0.9,
       native_sparse_decoding}};
  return all;
}

constexpr double allowed_difference = 1e-3;  // float32 sums over thousands of terms, gradients of order 10

double seconds_of(const std::function<void()>& work, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

int bench_attention(const BenchCase& of, int threads, int pairs, const std::string& only) {
  at::set_num_threads(threads);
  const auto pair = of.make();
  nlohmann::ordered_json line{
      {"case", of.name}, {"summary", of.summary}, {"a", pair.what_a}, {"b", pair.what_b}, {"threads", threads}};
  if (!only.empty()) {  // one side alone, for the memory it takes
    const auto& work = only == "a" ? pair.a : pair.b;
    for (int i = 0; i < 3; ++i) work();
    struct rusage used {};
    getrusage(RUSAGE_SELF, &used);
    line["peak_bytes"] = static_cast<int64_t>(used.ru_maxrss) * 1024;
    std::printf("%s\n", line.dump().c_str());
    return 0;
  }
  const auto difference = pair.difference();
  line["largest_difference"] = difference;
  if (!(difference <= allowed_difference)) {
    std::printf("%s\n", line.dump().c_str());
    throw Error(std::string("bench attention ") + of.name + ": the answers differ by " + std::to_string(difference) +
                " (allowed " + std::to_string(allowed_difference) + "); not timed");
  }
  if (pair.cache_bytes) {
    const auto [of_a, of_b] = pair.cache_bytes();
    line["cache_bytes"] = {{"a", of_a}, {"b", of_b}};
  }
  // Warm, and as many times a turn as take a tenth of a second or more.
  seconds_of(pair.b, 1);
  const auto once = std::min(seconds_of(pair.a, 1), seconds_of(pair.b, 1));
  const int times = std::clamp(static_cast<int>(0.1 / once), 1, 100);
  std::vector<double> ratios;
  double a = 0, b = 0;
  for (int i = 0; i < pairs; ++i) {
    const auto of_a = seconds_of(pair.a, times), of_b = seconds_of(pair.b, times);
    a += of_a / pairs;
    b += of_b / pairs;
    ratios.push_back(of_b / of_a);
  }
  line["a_seconds"] = a;
  line["b_seconds"] = b;
  line["ratios"] = ratios;
  std::sort(ratios.begin(), ratios.end());
  line["median_ratio"] = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  line["goal"] = of.goal;
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace

void add_bench_attention(CLI::App& bench, const std::shared_ptr<std::function<int()>>& chosen) {
  struct Wanted {
    std::string name, only;
    int threads = 2, pairs = 9;
  };
  auto wanted = std::make_shared<Wanted>();
  auto* command = bench.add_subcommand("attention", "one attention by two ways, in turn; prints one JSON line");
  std::map<std::string, const BenchCase*> by_name;
  std::vector<std::string> names;
  for (const auto& one : bench_cases()) {
    by_name[one.name] = &one;
    names.push_back(one.name);
  }
  command->add_option("case", wanted->name, "what is compared")->required()->check(CLI::IsMember(names));
  command->add_option("--threads", wanted->threads, "CPU threads")->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--pairs", wanted->pairs, "turns of both")->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--only", wanted->only, "run one side alone, and print the memory it took at most")
      ->check(CLI::IsMember({"a", "b"}));
  command->callback([chosen, wanted, by_name] {
    *chosen = [wanted, by_name] {
      return bench_attention(*by_name.at(wanted->name), wanted->threads, wanted->pairs, wanted->only);
    };
  });
}

}  // namespace headlab
