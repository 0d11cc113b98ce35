#pragma once

#include "src/heads/head_set.h"
#include "src/train/head_mask.h"

namespace headlab {

struct HeadDropoutOptions : Described<HeadDropoutOptions> {
  double rate = 0.1;
  std::vector<std::string> stacks;
  void describe(Fields& fields) override;
};

/// Masks each head of its stacks with probability p = `rate`, one by one, and multiplies the others by 1 / (1 - p), so
/// that the mean of what a head is multiplied by is 1. One draw an update and head.          (2508.19697)
class HeadDropout : public HeadMask {
 public:
  HeadDropout(const HeadDropoutOptions& options, const Model& model, const std::string& where);
  std::map<Stack, Tensor> scale(const MaskedUpdate& update) override;

 private:
  double rate_;
  HeadSet heads_;
  std::map<Stack, Tensor> ones_;
};

}  // namespace headlab
