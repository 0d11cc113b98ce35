#include "src/train/rates.h"

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "src/train/parameter_names.h"

namespace headlab {

void RateOptions::describe(Fields& fields) {
  fields
      .add("parameters", parameters,
           "which, by parts of their names: \"encoder\", \"gate0\", \"project.weight\", \"query_*\"")
      .means("empty: all");
  fields.add("except", except, "which not, in the same way");
  fields.add("factor", factor, "their learning rate is the schedule's times this")
      .at_least(0)
      .required()
      .means("0: they stay as they are");
}

Rates::Rates(const std::vector<RateOptions>& options, const NamedParameters& all, const Choice& optimizer) {
  for (const auto& [name, parameter] : all) factors_[name] = 1;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto where = "rates[" + std::to_string(i) + "]";
    for (const auto& [name, parameter] : select_parameters(all, options[i].parameters, options[i].except, where))
      factors_[name] = options[i].factor;
  }
  std::map<double, NamedParameters> groups;
  for (const auto& parameter : all) {
    const auto factor = factors_.at(parameter.first);
    (factor > 0 ? trained_ : fixed_).push_back(parameter);
    if (factor > 0) groups[factor].push_back(parameter);
  }
  if (trained_.empty() && !all.empty())
    throw UsageError("rates: expected a parameter that is trained, but all of them have the factor 0");
  for (const auto& [factor, parameters] : groups)
    groups_.emplace_back(factor, optimizers().make(optimizer, parameters));
}

void Rates::step(double rate) {
  for (const auto& [factor, optimizer] : groups_) optimizer->step(rate * factor);
}

TensorMap Rates::state() const {
  TensorMap state;
  for (const auto& [factor, optimizer] : groups_) state.merge(optimizer->state());
  return state;
}

void Rates::restore(const TensorMap& state, const std::string& from) {
  for (const auto& [factor, optimizer] : groups_) optimizer->restore(state, from);
}

HeldFixed::HeldFixed(const NamedParameters& parameters) : parameters_(parameters) {
  for (auto& [name, parameter] : parameters_) parameter.set_requires_grad(false);
}
HeldFixed::~HeldFixed() {
  for (auto& [name, parameter] : parameters_) parameter.set_requires_grad(true);
}

}  // namespace headlab
