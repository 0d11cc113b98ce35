#include "tools/templates/position/my_position.h"

#include "modules/tensor/torch.h"

namespace headlab {

MyPosition::MyPosition(const MyPositionOptions& options, Shape shape) : initial_(options.initial) {
  if (shape->cross)
    throw ShapeError(
        "position.my_position: expected a self-attention; a cross-attention's queries and keys share no positions");
  slope = register_parameter("slope", torch::empty({shape->H()}));
}

void MyPosition::draw(const std::function<at::Generator(const std::string&)>&) { slope.fill_(initial_); }

Tensor MyPosition::bias(const Tensor&, const Tensor& q_pos, const Tensor& k_pos) {
  const auto far_TS = (q_pos.unsqueeze(-1) - k_pos.unsqueeze(-2)).abs();  // [T,S] or [B,T,S]
  const auto far = far_TS.dim() == 2 ? far_TS.unsqueeze(0).unsqueeze(0) : far_TS.unsqueeze(1);
  return -slope.unsqueeze(-1).unsqueeze(-1) * far;
}

}  // namespace headlab
