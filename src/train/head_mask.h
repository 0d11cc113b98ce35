#pragma once

#include <functional>
#include <map>

#include "modules/base/heads.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

class Model;

/// One update, as a mask of its heads sees it.
struct MaskedUpdate {
  uint64_t seed = 0;  // of this update's draws
  /// The gradient of the update's loss (the mean over its target tokens) by the scale of each head, where all are 1;
  /// [L,H]. It costs a forward and a backward pass.
  std::function<std::map<Stack, Tensor>()> gradient;
};

/// Chooses, update by update, heads that training goes without: their outputs are multiplied by 0, and so they get no
/// gradient. It is the same for all the batches and tokens of an update. Nothing is masked outside training.
struct HeadMask {
  virtual ~HeadMask() = default;
  /// What each head's output is multiplied by; [L,H] for each stack, 1 where a head is not there.
  virtual std::map<Stack, Tensor> scale(const MaskedUpdate& update) = 0;
};

/// Context: the model, and where the mask stands in the spec ("head_masks[0]").
using HeadMasks = Registry<HeadMask, const Model&, const std::string&>;
const HeadMasks& head_masks();
const Catalogue& head_mask_catalogue();

}  // namespace headlab
