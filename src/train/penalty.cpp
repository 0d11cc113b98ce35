#include "src/train/penalty.h"

#include "modules/tensor/torch.h"
#include "src/train/parameter_names.h"

namespace headlab {
namespace {

/// The chosen parameters, and their gradients.
class OnParameters : public Penalty {
 protected:
  OnParameters(const PenaltyOptions& options, const NamedParameters& all, const std::string& where)
      : coefficient_(options.coefficient) {
    for (const auto& [name, parameter] : select_parameters(all, options.parameters, options.except, where)) {
      names_.push_back(name);
      parameters_.push_back(parameter);
    }
  }

  /// gradient += coefficient x; a parameter that the loss does not reach has x alone.
  void add(const std::vector<Tensor>& x) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& gradient = parameters_[i].mutable_grad();
      if (!gradient.defined()) gradient = torch::zeros_like(parameters_[i]);
      gradients.push_back(gradient);
    }
    at::_foreach_add_(gradients, x, coefficient_);
  }

  Tensor norms(double p) const { return torch::stack(at::_foreach_norm(parameters_, p)); }

  double coefficient_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_;
};

struct L1 : OnParameters {
  L1(const PenaltyOptions& options, const NamedParameters& all, const std::string& where)
      : OnParameters(options, all, where) {}
  void add_gradients() override {
    torch::NoGradGuard no_grad;
    add(at::_foreach_sign(parameters_));
  }
  Tensor value() const override {
    torch::NoGradGuard no_grad;
    return coefficient_ * norms(1).sum();
  }
};

struct L2 : OnParameters {
  L2(const PenaltyOptions& options, const NamedParameters& all, const std::string& where)
      : OnParameters(options, all, where) {}
  void add_gradients() override {
    torch::NoGradGuard no_grad;
    add(parameters_);
  }
  Tensor value() const override {
    torch::NoGradGuard no_grad;
    return 0.5 * coefficient_ * norms(2).square().sum();
  }
};

struct Decay : OnParameters {
  Decay(const PenaltyOptions& options, const NamedParameters& all, const std::string& where)
      : OnParameters(options, all, where) {}
  void decay(const std::function<double(const std::string&)>& rate_of) override {
    torch::NoGradGuard no_grad;
    std::vector<at::Scalar> kept;
    for (const auto& name : names_) kept.emplace_back(1 - rate_of(name) * coefficient_);
    at::_foreach_mul_(parameters_, kept);
  }
};

}  // namespace

void PenaltyOptions::describe(Fields& fields) {
  fields
      .add("coefficient", coefficient,
           "c: l1 adds c sum|w| to the loss, l2 c/2 sum w^2; decay takes lr c w off each weight a step")
      .at_least(0)
      .required();
  fields
      .add("parameters", parameters,
           "which, by parts of their names: \"encoder\", \"decoder.layers.0\", \"self_attention.mix.weight\", "
           "\"query_*\"")
      .means("empty: all");
  fields.add("except", except, "which not, in the same way");
}

const Penalties& penalties() {
  static const Penalties registry =
      Penalties("penalty", "keeps chosen parameters small")
          .entry<L1, PenaltyOptions>("l1", "the sum of absolute values: drives weights to 0")
          .entry<L2, PenaltyOptions>("l2", "half the sum of squares, through the gradient")
          .entry<Decay, PenaltyOptions>("decay", "takes a share of each weight off, beside the gradient", "1711.05101");
  return registry;
}
const Catalogue& penalty_catalogue() { return penalties().catalogue(); }

}  // namespace headlab
