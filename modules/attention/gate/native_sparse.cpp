#include "modules/attention/gate/native_sparse.h"

#include <algorithm>
#include <cmath>

#include "modules/attention/rules.h"
#include "modules/attention/weigh/weigh.h"
#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

std::string load_stats(Site site) { return to_string(site) + "/native_sparse"; }

/// var / mean^2 over the entries.
Tensor squared_variation(const Tensor& x) {
  const auto mean = x.mean();
  return (x - mean).square().mean() / mean.square().clamp_min(1e-12);
}

}  // namespace

void NativeSparseOptions::describe(Fields& fields) {
  fields
      .add("active", active,
           "heads that each token picks, beside the shared ones; of grouped keys and values: groups of heads")
      .at_least(1);
  fields
      .add("shared", shared,
           "the first so many heads keep every token, with weight 1; of grouped keys and values: groups of heads")
      .at_least(0);
  fields.add("window", window, "of the shared heads").at_least(1).unit("tokens").means("absent: they see all keys");
  fields.add("positions", positions, "what rotates goes by a token's place among those of its head, or in the text")
      .one_of({"own", "global"});
  fields
      .add("balance", balance,
           "how picks are spread over heads: shares times probabilities, squared coefficients of variation, or a bias "
           "without a loss")
      .one_of({"fp", "cv", "loss_free", "none"});
  fields.add("weight", weight, "of the balance loss; for fp and cv").at_least(0);
  fields.add("importance", importance, "within it, of the probabilities' variation; for cv").at_least(0);
  fields.add("load", load, "within it, of the expected loads' variation; for cv").at_least(0);
  fields.add("rate", rate, "of the bias at each optimiser step; for loss_free").at_least(0);
}

void NativeSparseOptions::rules(Problems& problems) const {
  if (window && shared == 0)
    problems.add("window", "goes with shared heads: the others see the tokens that picked them, however far away");
}

NativeSparse::NativeSparse(const NativeSparseOptions& options, Shape shape)
    : options_(options), shape_(std::move(shape)) {
  if (shape_->cross)
    throw ShapeError(
        "gates.native_sparse: expected a self-attention; a cross-attention's tokens ask other tokens than themselves");
  if (options_.active + options_.shared > shape_->original_heads)
    throw ShapeError("gates.native_sparse: expected at most the number of heads (" +
                     std::to_string(shape_->original_heads) + ") active and shared ones, got " +
                     std::to_string(options_.active) + " and " + std::to_string(options_.shared));
  const auto G = shape_->G();
  weight = register_parameter("weight", torch::empty({G, shape_->width}));
  if (options_.balance == "cv") noise_weight = register_parameter("noise_weight", torch::zeros({G, shape_->width}));
  if (options_.balance == "loss_free") bias = register_buffer("bias", torch::zeros({G}, torch::kFloat));
}

void NativeSparse::draw(const std::function<at::Generator(const std::string&)>& generator) {
  xavier_uniform(weight, shape_->width, shape_->original_heads, generator("weight"));
  if (noise_weight.defined()) noise_weight.zero_();
  if (bias.defined()) bias.zero_();
}

int64_t NativeSparse::shared() const {
  return std::count_if(shape_->groups.begin(), shape_->groups.end(),
                       [&](int64_t group) { return group < options_.shared; });
}

int64_t NativeSparse::picked() const { return std::min(options_.active, shape_->G() - shared()); }

std::vector<double> NativeSparse::kept_H() const {
  const auto first = shared(), others = shape_->G() - first;
  std::vector<double> kept;
  for (const auto group : shape_->group_of)
    kept.push_back(group < first ? 1.0 : static_cast<double>(picked()) / static_cast<double>(others));
  return kept;
}

void NativeSparse::outline(HeadOutline& outline) const {
  double slots = 0;
  for (const auto kept : kept_H()) slots += kept;
  outline.slots = std::llround(slots);
  if (options_.window) outline.window_H = windows();
}

int64_t NativeSparse::flops(int64_t T) const {
  return 2 * T * shape_->width *
         (weight.size(0) + (noise_weight.defined() && is_training() ? noise_weight.size(0) : 0));
}

std::vector<int64_t> NativeSparse::windows() const {
  std::vector<int64_t> of_heads;
  for (const auto group : shape_->group_of) of_heads.push_back(group < shared() ? *options_.window : 0);
  return of_heads;
}

void NativeSparse::axes(HeadAxes axes) const {
  axes.group("weight", 0, 1);
  if (noise_weight.defined()) axes.group("noise_weight", 0, 1);
  if (bias.defined()) axes.group("bias", 0, 1);
}

Tensor NativeSparse::logits(const Tensor& x_BTD, const Tensor& matrix) const {
  const auto first = shared();
  const auto l = torch::matmul(x_BTD, matrix.narrow(0, first, shape_->G() - first).t());
  return recording() ? l : l.to(matrix.scalar_type());  // products may be narrower; choices and losses are not
}

void NativeSparse::plan(HeadPlan& plan, const AttentionCall& call) {
  const auto& tokens_BSD = call.memory_BSD;
  const auto first = shared(), k = picked();
  std::vector<Tensor> held;
  if (first > 0) held.push_back(torch::ones_like(tokens_BSD.narrow(-1, 0, 1), torch::kBool).expand({-1, -1, first}));
  if (k > 0) {
    const auto l = logits(tokens_BSD, weight);
    const auto a = torch::softmax(l, -1);
    const bool noisy = is_training() && noise_weight.defined();
    Tensor deviation, chosen_by = a;
    if (noisy) {
      deviation = torch::softplus(logits(tokens_BSD, noise_weight));
      const auto e = call.run.uniform("native_sparse", call.site, l.sizes(), l).mul(2).sub(1).erfinv() * std::sqrt(2.0);
      chosen_by = l + deviation * e;
    }
    if (bias.defined()) chosen_by = a.detach() + bias.narrow(0, first, l.size(-1));
    held.push_back(
        torch::zeros_like(a.detach()).scatter(-1, std::get<1>(torch::topk(chosen_by.detach(), k, -1)), 1.0).gt(0));
    if (is_training()) {
      const auto of_queries = [&](const Tensor& x_BSE) {
        return x_BSE.defined() ? x_BSE.slice(1, x_BSE.size(1) - call.x_BTD.size(1)) : x_BSE;
      };
      learn({of_queries(l), of_queries(noisy ? chosen_by : Tensor()), of_queries(deviation), of_queries(a),
             of_queries(held.back())},
            call);
    }
  }
  plan.held_BGS = torch::cat(held, -1).transpose(1, 2);
  plan.own_places = options_.positions == "own";
  if (options_.window) plan.window_H = windows();
}

Tensor NativeSparse::weigh(Tensor z_BHTK, const HeadPlan& plan, const AttentionCall& call) {
  const auto first = shared();
  auto g_BGT = plan.held_BGS;
  if (!call.is_self()) g_BGT = g_BGT.slice(2, g_BGT.size(2) - call.x_BTD.size(1));
  if (picked() > 0) {
    const auto a_BET = torch::softmax(logits(call.x_BTD, weight), -1).transpose(1, 2);
    const auto of_picked = g_BGT.slice(1, first).to(a_BET.scalar_type()) * a_BET;
    g_BGT = first > 0 ? torch::cat({g_BGT.slice(1, 0, first).to(a_BET.scalar_type()), of_picked}, 1) : of_picked;
  }
  const auto g_BHT = pick(g_BGT.to(z_BHTK.scalar_type()), 1, shape_->group_of);
  return relevance::through(z_BHTK, z_BHTK * g_BHT.unsqueeze(-1));
}

void NativeSparse::learn(const Routing& routed, const AttentionCall& call) const {
  const auto& [logits, noisy, deviation, a, picked_BTE] = routed;
  const auto k = picked(), E = a.size(-1);
  auto real_BT1 = torch::ones_like(a.detach().narrow(-1, 0, 1));
  if (call.see.query_mask_BT.defined()) real_BT1 = call.see.query_mask_BT.to(real_BT1.scalar_type()).unsqueeze(-1);
  const auto tokens = real_BT1.sum().clamp_min(1);
  const auto over_tokens = [&](const Tensor& x_BTE) { return (x_BTE * real_BT1).sum({0, 1}); };
  const auto load_E = over_tokens(picked_BTE.to(real_BT1.scalar_type()));
  Tensor loss;
  if (options_.balance == "fp") {
    loss = static_cast<double>(E) * (load_E / (tokens * k) * (over_tokens(a) / tokens)).sum();
  } else if (options_.balance == "cv") {
    auto probability = torch::ones_like(a);  // of being picked, were a head's noise drawn anew
    if (k < E) {
      const auto largest = std::get<0>(torch::topk(noisy, k + 1, -1));
      const auto bar = torch::where(picked_BTE, largest.narrow(-1, k, 1), largest.narrow(-1, k - 1, 1));
      probability = 0.5 * (1 + torch::erf((logits - bar) / deviation / std::sqrt(2.0)));
    }
    loss = options_.importance * squared_variation(over_tokens(a)) +
           options_.load * squared_variation(over_tokens(probability));
  } else if (options_.balance == "loss_free") {
    auto& sum = call.run.stats[load_stats(call.site)];  // a text may be read in several calls
    sum = sum.defined() ? sum + load_E : load_E;
  }
  if (loss.defined()) call.run.aux.push_back({"balance", call.site, options_.weight * loss * tokens, tokens});
}

void NativeSparse::update(Site site, const std::map<std::string, Tensor>& stats) {
  const auto found = stats.find(load_stats(site));
  if (!bias.defined() || found == stats.end()) return;
  const auto& load_E = found->second;
  bias.slice(0, shared()).add_(torch::sign(load_E.mean() - load_E).to(bias.scalar_type()), options_.rate);
}

void native_sparse_rule(const NativeSparseOptions& options, const AttentionAround& around) {
  const auto groups = around.key_heads().value_or(around.options.heads);
  if (options.active + options.shared > groups)
    around.problem("active", "expected at most the number of key/value heads (" + std::to_string(groups) +
                                 ") with the shared ones, got " + std::to_string(options.active) + " and " +
                                 std::to_string(options.shared));
}

}  // namespace headlab
