#include "modules/attention/gate/scalar.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

ScalarGate::ScalarGate(const ScalarGateOptions& options, Shape shape) : initial_(options.initial) {
  change = register_parameter("change", torch::empty({shape->H()}));
}

void ScalarGate::draw(const std::function<at::Generator(const std::string&)>&) { change.fill_(initial_ - 1); }

Tensor ScalarGate::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) {
  return relevance::through(z_BHTK, z_BHTK * (1 + change).unsqueeze(-1).unsqueeze(-1));
}

}  // namespace headlab
