#pragma once

#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <string>
#include <vector>

#include "modules/tensor/torch.h"

/// TorchScript from the C++ modules themselves: what they do with tensors is recorded, so that each mechanism has one
/// text.
namespace headlab {

/// A TorchScript module with the submodules, parameters and buffers of `module` under their own names, none copied.
torch::jit::Module mirror(torch::nn::Module& module, const std::string& type_name);

/// Adds `method` to a mirror: the operations that `function` runs on `inputs`, tensors or lists of tensors, for any
/// other tensors of the same number of dimensions. `function` must run the mirrored module; `names` are the inputs'.
/// Masks that layers have in common are computed once, dropout that does nothing is left out, and what depends on
/// parameters alone (gates that are constant at inference) is computed now and kept as a buffer of `mirrored`.
/// Throws Error where the recording holds a device, or a tensor that would bind it to one or to a size.
void record(torch::jit::Module& mirrored, const std::string& method, const std::vector<std::string>& names,
            std::vector<c10::IValue> inputs, const std::function<c10::IValue(std::vector<c10::IValue>)>& function);

}  // namespace headlab
