#include "src/train/optimizer.h"

#include <set>

#include "modules/tensor/torch.h"
#include "src/train/optimizer/adam.h"
#include "src/train/optimizer/sgd.h"

namespace headlab {

NamedParameters trained_parameters(const torch::nn::Module& module) {
  NamedParameters parameters;
  std::set<const void*> seen;
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad() && seen.insert(item.value().unsafeGetTensorImpl()).second)
      parameters.emplace_back(item.key(), item.value());
  return parameters;
}

const Optimizers& optimizers() {
  static const Optimizers registry =
      Optimizers("optimizer", "changes parameters by their gradients")
          .entry<Adam, AdamOptions>("adam", "steps by the mean gradient over the root of the mean squared gradient",
                                    "1412.6980")
          .entry<AdamW, AdamWOptions>("adamw", "Adam with decoupled weight decay", "1711.05101")
          .entry<Sgd, SgdOptions>("sgd", "stochastic gradient descent, with momentum");
  return registry;
}
const Catalogue& optimizer_catalogue() { return optimizers().catalogue(); }

void restore_state(const TensorMap& mine, const TensorMap& state, const std::string& from) {
  for (const auto& [name, tensor] : mine) {
    const auto found = state.find(name);
    if (found == state.end()) throw FileError(from + ": no " + name + ": the optimizer's state is another model's");
    if (found->second.sizes() != tensor.sizes())
      throw FileError(from + ": " + name + ": expected " + shape_text(tensor) + ", got " + shape_text(found->second));
  }
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : mine) tensor.copy_(state.at(name));
}

Tensor clip_gradients(const NamedParameters& parameters, double limit) {
  torch::NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  if (gradients.empty()) return torch::zeros({});
  const auto norm = torch::stack(at::_foreach_norm(gradients, 2)).norm();
  const auto factor = (limit / (norm + 1e-6)).clamp_max(1.0);
  // On the CPU looking at a number costs nothing, and most steps need no scaling.
  if (limit > 0 && !(factor.is_cpu() && factor.item<double>() == 1.0)) at::_foreach_mul_(gradients, factor);
  return norm;
}

}  // namespace headlab
