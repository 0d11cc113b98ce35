#include "modules/attention/gate/hard_concrete.h"

#include <cmath>

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void HardConcreteOptions::describe(Fields& fields) {
  fields.add("temperature", temperature, "tau: the lower, the closer the noise is to 0 or 1").above(0);
  fields.add("stretch_low", stretch_low, "gamma, the lower end of the stretch").below(0);
  fields.add("stretch_high", stretch_high, "zeta, the upper end of the stretch").above(1);
  fields.add("initial", initial, "log alpha at the start; 2: open");
  fields.add("penalty", penalty, "weight of the expected number of open gates in the loss").at_least(0);
}

HardConcrete::HardConcrete(const HardConcreteOptions& options, Shape shape) : options_(options) {
  log_alpha = register_parameter("log_alpha", torch::full({shape->H()}, options.initial, torch::get_default_dtype()));
}

void HardConcrete::draw(const std::function<at::Generator(const std::string&)>&) { log_alpha.fill_(options_.initial); }

Tensor HardConcrete::gate(const Tensor& u_H) const {
  const auto c = u_H.defined() ? torch::sigmoid((u_H.log() - (1 - u_H).log() + log_alpha) / options_.temperature)
                               : torch::sigmoid(log_alpha);
  return (c * (options_.stretch_high - options_.stretch_low) + options_.stretch_low).clamp(0, 1);
}

Tensor HardConcrete::probability_open() const {
  return torch::sigmoid(log_alpha - options_.temperature * std::log(-options_.stretch_low / options_.stretch_high));
}

Tensor HardConcrete::noise(const std::string& name, const AttentionCall& call) const {
  if (!is_training()) return {};
  if (options_.penalty > 0)
    call.run.aux.push_back(
        {name, call.site, options_.penalty * probability_open().sum(), torch::ones({}, log_alpha.options())});
  constexpr double margin = 1e-6;  // keeps the logarithms finite
  return call.run.uniform(name, call.site, log_alpha.sizes(), log_alpha) * (1 - 2 * margin) + margin;
}

Tensor HardConcrete::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall& call) {
  const auto of_heads = gate(noise("hard_concrete", call)).to(z_BHTK.scalar_type()).unsqueeze(-1).unsqueeze(-1);
  return relevance::through(z_BHTK, z_BHTK * of_heads);
}

std::vector<int64_t> HardConcrete::closed() const {
  std::vector<int64_t> heads;
  const auto gates = gate().detach().cpu().to(torch::kFloat64);
  for (int64_t h = 0; h < gates.size(0); ++h)
    if (gates[h].item<double>() == 0) heads.push_back(h);
  return heads;
}

}  // namespace headlab
