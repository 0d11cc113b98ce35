#include "modules/tensor/relevance.h"

#include <algorithm>
#include <set>

#include "modules/tensor/torch.h"

namespace headlab::relevance {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr double off = -1;
thread_local double alpha_now = off;

constexpr double nothing = 1e-30;  // sums of less are empty: 1 / nothing is a float still

Tensor above(const Tensor& x) { return x.clamp_min(0); }
Tensor below(const Tensor& x) { return x.clamp_max(0); }

/// R_j by what its contributions are multiplied with: R_i = z+_ij positive_j + z-_ij negative_j + (a part of) left_j.
struct Rates {
  Tensor positive, negative, left;
};

Rates rates(const Tensor& R, const Tensor& P, const Tensor& N, double alpha) {
  const auto has_P = P.gt(nothing), has_N = N.lt(-nothing);
  const auto p = has_P.to(R.scalar_type()), n = has_N.to(R.scalar_type());
  const auto one = torch::ones({}, R.options());
  return {R * p * (1 - (1 - alpha) * n) / torch::where(has_P, P, one),
          R * n * (1 - alpha * p) / torch::where(has_N, N, one), R * (1 - p) * (1 - n)};
}

/// What the sums of both signs are made of: [x+, x-] along the last dimension times [w+, w-] is P, times [w-, w+] it is
/// N.
Tensor by_sign(const Tensor& x, int64_t dim) { return torch::cat({above(x), below(x)}, dim); }
Tensor by_other_sign(const Tensor& x, int64_t dim) { return torch::cat({below(x), above(x)}, dim); }

struct LinearRule : Function<LinearRule> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& given_bias, double alpha) {
    const auto bias = given_bias.value_or(Tensor());
    const auto x_signs = by_sign(x, -1);
    auto P = torch::matmul(x_signs, by_sign(weight, 1).t()), N = torch::matmul(x_signs, by_other_sign(weight, 1).t());
    if (bias.defined()) {
      P = P + above(bias);
      N = N + below(bias);
    }
    context->save_for_backward({x, weight, bias, P, N});
    context->saved_data["alpha"] = alpha;
    return torch::nn::functional::linear(x, weight, bias);
  }
  static variable_list backward(AutogradContext* context, variable_list R) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &bias = saved[2];
    const auto rate = rates(R[0], saved[3], saved[4], context->saved_data["alpha"].toDouble());
    const auto I = weight.size(1);
    const auto signs =
        torch::matmul(rate.positive, by_sign(weight, 1)) + torch::matmul(rate.negative, by_other_sign(weight, 1));
    auto alike = rate.left.sum(-1, /*keepdim=*/true);
    if (bias.defined())
      alike = alike + (rate.positive * above(bias) + rate.negative * below(bias)).sum(-1, /*keepdim=*/true);
    const auto to_x =
        above(x) * signs.narrow(-1, 0, I) + below(x) * signs.narrow(-1, I, I) + alike / static_cast<double>(I);
    return {to_x, Tensor(), Tensor(), Tensor()};
  }
};

struct SumRule : Function<SumRule> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y, double alpha) {
    context->save_for_backward({x, y});
    context->saved_data["alpha"] = alpha;
    return x + y;
  }
  static variable_list backward(AutogradContext* context, variable_list R) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &y = saved[1];
    const auto rate = rates(R[0], above(x) + above(y), below(x) + below(y), context->saved_data["alpha"].toDouble());
    const auto part = [&](const Tensor& z) {
      return above(z) * rate.positive + below(z) * rate.negative + rate.left / 2;
    };
    return {part(x), part(y), Tensor()};
  }
};

struct WeightedSumRule : Function<WeightedSumRule> {
  static Tensor forward(AutogradContext* context, const Tensor& weights, const Tensor& values, double alpha) {
    const auto w_signs = by_sign(weights, -1);
    context->save_for_backward({weights, values, torch::matmul(w_signs, by_sign(values, -2)),
                                torch::matmul(w_signs, by_other_sign(values, -2))});
    context->saved_data["alpha"] = alpha;
    return torch::matmul(weights, values);
  }
  static variable_list backward(AutogradContext* context, variable_list R) {
    const auto saved = context->get_saved_variables();
    const auto &weights = saved[0], &values = saved[1];
    const auto rate = rates(R[0], saved[2], saved[3], context->saved_data["alpha"].toDouble());
    const auto S = weights.size(-1);
    const auto w_signs = by_sign(weights, -1).transpose(-2, -1);  // [..., 2S, T]
    const auto p = torch::matmul(w_signs, rate.positive), n = torch::matmul(w_signs, rate.negative);
    const auto upper = [&](const Tensor& x) { return x.narrow(-2, 0, S); };
    const auto lower = [&](const Tensor& x) { return x.narrow(-2, S, S); };
    const auto size = weights.abs();
    const auto share = size / size.sum(-1, /*keepdim=*/true).clamp_min(nothing);
    const auto to_values = above(values) * (upper(p) + lower(n)) + below(values) * (lower(p) + upper(n)) +
                           torch::matmul(share.transpose(-2, -1), rate.left);
    return {Tensor(), to_values, Tensor()};
  }
};

struct ThroughRule : Function<ThroughRule> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) {
    if (!x.sizes().equals(y.sizes())) throw wrong_shape("relevance::through", shape_text(x), y);
    return y.clone();
  }
  static variable_list backward(AutogradContext*, variable_list R) { return {R[0], Tensor()}; }
};

using torch::autograd::CppNode;
using torch::autograd::Node;

bool has_rule(Node* node) {
  return dynamic_cast<CppNode<LinearRule>*>(node) || dynamic_cast<CppNode<SumRule>*>(node) ||
         dynamic_cast<CppNode<WeightedSumRule>*>(node) || dynamic_cast<CppNode<ThroughRule>*>(node);
}

/// What only moves numbers: the gradient of each number it gives goes to the one that it is.
bool moves(const std::string& operation) {
  static const std::set<std::string> names{"AliasBackward0",       "CatBackward0",
                                           "CloneBackward0",       "ConstantPadNdBackward0",
                                           "ExpandBackward0",      "FlipBackward0",
                                           "GatherBackward0",      "IndexBackward0",
                                           "IndexSelectBackward0", "MaskedFillBackward0",
                                           "MaskedFillBackward1",  "PermuteBackward0",
                                           "RepeatBackward0",      "ReshapeAliasBackward0",
                                           "SelectBackward0",      "SliceBackward0",
                                           "SplitBackward0",       "SplitWithSizesBackward0",
                                           "SqueezeBackward0",     "SqueezeBackward1",
                                           "StackBackward0",       "TBackward0",
                                           "ToCopyBackward0",      "TransposeBackward0",
                                           "UnbindBackward0",      "UnsafeViewBackward0",
                                           "UnsqueezeBackward0",   "ViewBackward0"};
  return names.count(operation) > 0;
}

}  // namespace

Guard::Guard(double alpha) : before_(alpha_now) { alpha_now = alpha; }
Guard::~Guard() { alpha_now = before_; }

bool flows() { return alpha_now != off; }

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!flows()) return torch::nn::functional::linear(x, weight, bias);
  return LinearRule::apply(x, weight.detach(), bias.defined() ? std::optional<Tensor>(bias.detach()) : std::nullopt,
                           alpha_now);
}

Tensor sum(const Tensor& x, const Tensor& y) { return flows() ? SumRule::apply(x, y, alpha_now) : x + y; }

Tensor weighted_sum(const Tensor& weights, const Tensor& values) {
  return flows() ? WeightedSumRule::apply(weights.detach(), values, alpha_now) : torch::matmul(weights, values);
}

Tensor through(const Tensor& x, const Tensor& y) { return flows() ? ThroughRule::apply(x, y.detach()) : y; }

std::vector<Uncovered> uncovered(const Tensor& y) {
  std::vector<Uncovered> found;
  std::vector<Node*> open{y.grad_fn().get()};
  std::set<Node*> seen;
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    const auto edges = node->next_edges();
    if (edges.empty()) continue;  // a leaf
    if (const auto name = node->name(); !has_rule(node) && !moves(name)) found.push_back({name, node->sequence_nr()});
    for (const auto& edge : edges) open.push_back(edge.function.get());
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.order > b.order; });
  return found;
}

}  // namespace headlab::relevance
