#include "src/train/optimizer/adam.h"

#include <algorithm>

#include "modules/tensor/torch.h"

namespace headlab {

void AdamOptions::describe(Fields& fields) {
  fields.add("beta1", beta1, "decay of the mean gradient").at_least(0).below(1);
  fields.add("beta2", beta2, "decay of the mean squared gradient").at_least(0).below(1);
  fields.add("epsilon", epsilon, "added to the root of the mean squared gradient").above(0);
}

void AdamWOptions::describe(Fields& fields) {
  AdamOptions::describe(fields);
  fields.add("weight_decay", weight_decay, "share of each weight taken off a step, times the learning rate")
      .at_least(0);
  fields.add("decay_vectors", decay_vectors, "decay biases, norms and gates too, not matrices alone");
}

Adam::Adam(const AdamOptions& options, const NamedParameters& parameters) : options_(options), parameters_(parameters) {
  if (parameters_.empty()) return;
  all_steps_ = torch::zeros({static_cast<int64_t>(parameters_.size())},
                            torch::dtype(torch::kFloat32).device(parameters_.front().second.device()));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    m_.push_back(torch::zeros_like(parameters_[i].second));
    v_.push_back(torch::zeros_like(parameters_[i].second));
    steps_.push_back(all_steps_[static_cast<int64_t>(i)]);
  }
}

void Adam::update(double learning_rate, double weight_decay, bool decay_vectors) {
  torch::NoGradGuard no_grad;
  const bool all = std::all_of(parameters_.begin(), parameters_.end(),
                               [](const auto& item) { return item.second.grad().defined(); });
  if (all && !parameters_.empty()) all_steps_.add_(1);  // one addition for all
  for (const bool decayed : {true, false}) {
    std::vector<Tensor> parameters, gradients, m, v, steps;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& parameter = parameters_[i].second;
      if (!parameter.grad().defined() || (decay_vectors || parameter.dim() > 1) != decayed) continue;
      parameters.push_back(parameter);
      gradients.push_back(parameter.grad());
      m.push_back(m_[i]);
      v.push_back(v_[i]);
      steps.push_back(steps_[i]);
    }
    if (parameters.empty()) continue;
    if (!all) at::_foreach_add_(steps, 1);
    at::_fused_adamw_(parameters, gradients, m, v, {}, steps, learning_rate, options_.beta1, options_.beta2,
                      decayed ? weight_decay : 0.0, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

TensorMap Adam::state() const {
  TensorMap state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& name = parameters_[i].first;
    state["m." + name] = m_[i];
    state["v." + name] = v_[i];
    state["steps." + name] = steps_[i];
  }
  return state;
}

void Adam::restore(const TensorMap& state, const std::string& from) { restore_state(this->state(), state, from); }

}  // namespace headlab
