#include "src/train/optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>

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
      Optimizers("optimizer", "changes parameters by their gradients").entry<AdamW, AdamWOptions>("adamw", "Adam with decoupled weight decay", "1711.05101");
  return registry;
}
const Catalogue& optimizer_catalogue() { return optimizers().catalogue(); }

void AdamWOptions::describe(Fields& fields) {
  fields.add("beta1", beta1, "decay of the mean gradient").at_least(0).below(1);
  fields.add("beta2", beta2, "decay of the mean squared gradient").at_least(0).below(1);
  fields.add("epsilon", epsilon, "added to the root of the mean squared gradient").above(0);
  fields.add("weight_decay", weight_decay, "share of each weight taken off a step, times the learning rate").at_least(0);
  fields.add("decay_vectors", decay_vectors, "decay biases, norms and gates too, not matrices alone");
}

AdamW::AdamW(const AdamWOptions& options, const NamedParameters& parameters) : options_(options), parameters_(parameters) {
  if (parameters_.empty()) return;
  all_steps_ = torch::zeros({static_cast<int64_t>(parameters_.size())}, torch::dtype(torch::kFloat32).device(parameters_.front().second.device()));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    m_.push_back(torch::zeros_like(parameters_[i].second));
    v_.push_back(torch::zeros_like(parameters_[i].second));
    steps_.push_back(all_steps_[static_cast<int64_t>(i)]);
  }
}

void AdamW::step(double learning_rate) {
  torch::NoGradGuard no_grad;
  const bool all = std::all_of(parameters_.begin(), parameters_.end(), [](const auto& item) { return item.second.grad().defined(); });
  if (all) all_steps_.add_(1);  // one addition for all
  for (const bool decayed : {true, false}) {
    std::vector<Tensor> parameters, gradients, m, v, steps;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& parameter = parameters_[i].second;
      if (!parameter.grad().defined() || (options_.decay_vectors || parameter.dim() > 1) != decayed) continue;
      parameters.push_back(parameter);
      gradients.push_back(parameter.grad());
      m.push_back(m_[i]);
      v.push_back(v_[i]);
      steps.push_back(steps_[i]);
    }
    if (parameters.empty()) continue;
    if (!all) at::_foreach_add_(steps, 1);
    at::_fused_adamw_(parameters, gradients, m, v, {}, steps, learning_rate, options_.beta1, options_.beta2,
                      decayed ? options_.weight_decay : 0.0, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

TensorMap AdamW::state() const {
  TensorMap state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& name = parameters_[i].first;
    state["m." + name] = m_[i];
    state["v." + name] = v_[i];
    state["steps." + name] = steps_[i];
  }
  return state;
}

void AdamW::restore(const TensorMap& state, const std::string& from) {
  auto mine = this->state();
  for (auto& [name, tensor] : mine) {
    const auto found = state.find(name);
    if (found == state.end()) throw FileError(from + ": no " + name + ": the optimizer's state is another model's");
    if (found->second.sizes() != tensor.sizes())
      throw FileError(from + ": " + name + ": expected " + shape_text(tensor) + ", got " + shape_text(found->second));
  }
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : mine) tensor.copy_(state.at(name));
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
