#include "modules/attention/weigh/softmax.h"

#include "modules/tensor/torch.h"

namespace headlab {

// The safe form gives zeros, and zero gradients, for a row of -inf.
Tensor Softmax::weights(const Tensor& scores_BHTS) { return at::_safe_softmax(scores_BHTS, -1); }

}  // namespace headlab
