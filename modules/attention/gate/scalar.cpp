#include "modules/attention/gate/scalar.h"

#include "modules/tensor/torch.h"

namespace headlab {

ScalarGate::ScalarGate(const ScalarGateOptions& options, Shape shape) : initial_(options.initial) {
  scale = register_parameter("scale", torch::empty({shape->H()}));
}

void ScalarGate::draw(const std::function<at::Generator(const std::string&)>&) { scale.fill_(initial_); }

Tensor ScalarGate::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) {
  return z_BHTK * scale.unsqueeze(-1).unsqueeze(-1);
}

}  // namespace headlab
