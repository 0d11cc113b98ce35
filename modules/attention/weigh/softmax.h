#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// w = softmax(s)
class Softmax : public Normalise {
 public:
  explicit Softmax(const NoOptions&) {}
  Tensor weights(const Tensor& scores_BHTS) override;
  bool is_softmax() const override { return true; }
};

}  // namespace headlab
