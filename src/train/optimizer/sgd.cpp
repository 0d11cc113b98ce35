#include "src/train/optimizer/sgd.h"

#include "modules/tensor/torch.h"

namespace headlab {

void SgdOptions::describe(Fields& fields) {
  fields.add("momentum", momentum, "decay of the sum of gradients that a step follows")
      .at_least(0)
      .below(1)
      .means("0: the gradient alone");
  fields.add("nesterov", nesterov, "look ahead: step by the gradient and the decayed sum");
}

void SgdOptions::rules(Problems& problems) const {
  if (nesterov && momentum == 0) problems.add("nesterov", "expected a momentum above 0 to look ahead by, got 0");
}

Sgd::Sgd(const SgdOptions& options, const NamedParameters& parameters) : options_(options), parameters_(parameters) {
  if (options_.momentum == 0) return;
  for (const auto& [name, parameter] : parameters_) m_.push_back(torch::zeros_like(parameter));
}

void Sgd::step(double learning_rate) {
  torch::NoGradGuard no_grad;
  std::vector<Tensor> parameters, gradients, m;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i].second;
    if (!parameter.grad().defined()) continue;
    parameters.push_back(parameter);
    gradients.push_back(parameter.grad());
    if (!m_.empty()) m.push_back(m_[i]);
  }
  if (parameters.empty()) return;
  at::_fused_sgd_(parameters, gradients, m, /*weight_decay=*/0, options_.momentum, learning_rate, /*dampening=*/0,
                  options_.nesterov,
                  /*maximize=*/false, /*is_first_step=*/false);
}

TensorMap Sgd::state() const {
  TensorMap state;
  for (std::size_t i = 0; i < m_.size(); ++i) state["m." + parameters_[i].first] = m_[i];
  return state;
}

void Sgd::restore(const TensorMap& state, const std::string& from) { restore_state(this->state(), state, from); }

}  // namespace headlab
