#include "modules/attention/gate/l0_round.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void L0RoundOptions::describe(Fields& fields) {
  HardConcreteOptions::describe(fields);
  fields.add("scale_output", scale_output, "multiply what open heads give by heads / open heads");
}

L0Round::L0Round(const L0RoundOptions& options, Shape shape)
    : HardConcrete(options, shape),
      scale_output_(options.scale_output),
      original_heads_(static_cast<double>(shape->original_heads)) {
  removed_open = register_buffer("removed_open", torch::zeros({1}, torch::get_default_dtype()));
}

Tensor L0Round::gate(const Tensor& u_H) const {
  const auto soft = HardConcrete::gate(u_H);
  const auto hard = soft.ge(0.5).to(soft.scalar_type());
  return soft.requires_grad() ? hard + (soft - soft.detach()) : hard;
}

Tensor L0Round::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall& call) {
  auto g_H = gate(log_alpha.requires_grad() ? noise("l0_round", call) : Tensor());
  if (scale_output_) {
    const auto open = (g_H.detach().sum() + removed_open).clamp_min(1);
    g_H = g_H * (original_heads_ / open);
  }
  return relevance::through(z_BHTK, z_BHTK * g_H.to(z_BHTK.scalar_type()).unsqueeze(-1).unsqueeze(-1));
}

void L0Round::keep(const std::vector<int64_t>& positions) {
  const torch::NoGradGuard no_grad;
  const auto g_H = gate();
  removed_open += g_H.sum();
  for (const auto position : positions) removed_open -= g_H[position];
}

}  // namespace headlab
