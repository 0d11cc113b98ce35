#pragma once

#include <algorithm>
#include <vector>

#include "modules/tensor/torch.h"

namespace headlab {

/// A module that may have parameters in common with others of its model: the same tensors, registered under a name in
/// each of these modules. Counts, optimisers and checkpoints take such a tensor once, by the first of its names.
struct Tied {
  virtual ~Tied() = default;
  /// Puts the tensors of `first` in the place of its own; false: they have none in common, and nothing has changed.
  virtual bool tie(const Tied& first) = 0;
};

/// Ties each module below `root` to the first that it has parameters in common with. A model does so at the end of its
/// constructor; until then, and in an attention by itself, a module has tensors of its own.
inline void tie_modules(const torch::nn::Module& root) {
  std::vector<const Tied*> firsts;
  for (const auto& module : root.modules(/*include_self=*/false)) {
    auto* tied = dynamic_cast<Tied*>(module.get());
    if (tied && std::none_of(firsts.begin(), firsts.end(), [&](const Tied* first) { return tied->tie(*first); }))
      firsts.push_back(tied);
  }
}

}  // namespace headlab
