#include "modules/attention/gate/held_windows.h"

#include "modules/tensor/torch.h"

namespace headlab {

HeldWindows::HeldWindows(const std::string& entry, Shape shape) : shape_(std::move(shape)) {
  if (shape_->cross)
    throw ShapeError("gates." + entry +
                     ": expected a self-attention; a cross-attention's queries and keys share no positions");
  window = register_buffer("window", torch::zeros({shape_->H()}, torch::kLong));
}

void HeldWindows::set_windows(const std::vector<int64_t>& of_original_heads) {
  std::vector<int64_t> of_heads;
  for (auto head : shape_->heads) of_heads.push_back(of_original_heads[head]);
  window.copy_(torch::tensor(of_heads, torch::kLong));
}

}  // namespace headlab
