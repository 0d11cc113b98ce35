#pragma once

#include "modules/model/model.h"

namespace headlab {

/// What the encoder and the decoder read of a batch. A model of one text reads the same on both sides.
struct Readings {
  Tensor source_BS, source_mask_BS, target_BT, target_mask_BT;
};
inline Readings readings_of(const Batch& inputs) {
  const bool pair = inputs.source_BS.defined();
  return {pair ? inputs.source_BS : inputs.target_BT, pair ? inputs.source_mask_BS : inputs.target_mask_BT,
          inputs.target_BT, inputs.target_mask_BT};
}

}  // namespace headlab
