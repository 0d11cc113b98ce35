#include "modules/loss/cross_entropy.h"

#include "modules/tensor/torch.h"

namespace headlab {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SmoothedCrossEntropy : torch::autograd::Function<SmoothedCrossEntropy> {
  static variable_list forward(AutogradContext* context, const Tensor& logits_NV, const Tensor& target_N,
                               double epsilon) {
    const auto log_p = torch::log_softmax(logits_NV, -1);
    const auto nll = log_p.gather(1, target_N.unsqueeze(1)).sum().neg();
    const auto V = static_cast<double>(logits_NV.size(1));
    const auto loss = epsilon > 0 ? (1 - epsilon) * nll - epsilon / V * log_p.sum() : nll.clone();
    context->save_for_backward({log_p, target_N});
    context->saved_data["epsilon"] = epsilon;
    context->mark_non_differentiable({nll});
    return {loss, nll};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto epsilon = context->saved_data["epsilon"].toDouble();
    const auto& log_p = saved[0];
    const auto target = saved[1].unsqueeze(1);
    auto gradient = log_p.exp();
    if (epsilon > 0) gradient.sub_(epsilon / static_cast<double>(log_p.size(1)));
    gradient.scatter_add_(1, target, torch::full_like(target, -(1 - epsilon), gradient.options()));
    return {gradient.mul_(gradients[0]), {}, {}};
  }
};

}  // namespace

TokenLoss smoothed_cross_entropy(const Tensor& logits_NV, const Tensor& target_N, double epsilon) {
  if (logits_NV.dim() != 2 || target_N.dim() != 1 || logits_NV.size(0) != target_N.size(0))
    throw wrong_shape("cross entropy", "logits [N, V] and targets [N]; targets " + shape_text(target_N), logits_NV);
  auto parts = SmoothedCrossEntropy::apply(logits_NV, target_N, epsilon);
  return {parts[0], parts[1].detach(), target_N.size(0)};
}

}  // namespace headlab
