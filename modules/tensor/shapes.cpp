#include "modules/tensor/shapes.h"

#include <torch/csrc/jit/frontend/tracer.h>

namespace headlab {

std::string shape_text(const Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  std::string text = "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

bool recording() { return torch::jit::tracer::isTracing(); }

}  // namespace headlab
