#include "tools/templates/gate/my_gate.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

MyGate::MyGate(const MyGateOptions& options, Shape shape) : initial_(options.initial) {
  a = register_parameter("a", torch::empty({shape->H()}));
}

void MyGate::draw(const std::function<at::Generator(const std::string&)>&) { a.fill_(initial_); }

Tensor MyGate::weigh(Tensor z_BHTK, const HeadPlan&, const AttentionCall&) {
  return relevance::through(z_BHTK, z_BHTK * a.sigmoid().unsqueeze(-1).unsqueeze(-1));
}

}  // namespace headlab
