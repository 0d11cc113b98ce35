#pragma once

#include <string>

#include "modules/tensor/torch.h"

namespace headlab {

/// The parameter "project.weight" of a module.
inline torch::Tensor parameter(const torch::nn::Module& module, const std::string& name) {
  return module.named_parameters()[name];
}

/// How many numbers the parameters have whose names begin with `prefix`, "project.".
inline int64_t numbers_of(const torch::nn::Module& module, const std::string& prefix = "") {
  int64_t count = 0;
  for (const auto& item : module.named_parameters())
    if (item.key().rfind(prefix, 0) == 0) count += item.value().numel();
  return count;
}

}  // namespace headlab
