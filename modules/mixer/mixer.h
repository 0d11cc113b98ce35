#pragma once

#include "modules/attention/call.h"
#include "modules/tensor/axes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// A token mixer: what a layer calls to let tokens see each other. Attention is one.
struct Mixer : torch::nn::Module {
  /// x_BTD (and a memory) -> y_BTD.
  virtual Tensor forward(const AttentionCall& call) = 0;
  /// Original numbers of the heads that are there.
  virtual const std::vector<int64_t>& heads() const = 0;
  virtual int64_t original_heads() const = 0;
  /// Leaves only these heads (original numbers, each there now); parameters become smaller.
  virtual void keep(const std::vector<int64_t>& heads) = 0;
  virtual HeadAxes axes() const = 0;
  /// Floating-point operations of the products of matrices, a multiply-add counted as 2, for T queries over S keys.
  virtual int64_t flops(int64_t T, int64_t S, bool causal) const = 0;
  /// Numbers that a cache keeps for each token.
  virtual int64_t cache_numbers() const = 0;
  /// Multiplies maps that follow each other into one another, where that changes nothing but rounding; done for an
  /// export.
  virtual void absorb() {}
};

}  // namespace headlab
