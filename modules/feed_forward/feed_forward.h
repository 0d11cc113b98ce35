#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"

namespace headlab {

/// The same network at each position: x_BTD -> y_BTD.
struct FeedForward : torch::nn::Module {
  virtual Tensor feed(const Tensor& x_BTD) = 0;
};

using FeedForwards = Registry<FeedForward, int64_t>;  // context: the width D
const FeedForwards& feed_forwards();
const Catalogue& feed_forward_catalogue();

struct PositionWiseOptions : Described<PositionWiseOptions> {
  std::optional<int64_t> width;
  double dropout = 0.0;
  void describe(Fields& fields) override;
};

/// act(x W_1 + b_1) W_2 + b_2          (1706.03762, eq. 2)
class PositionWise : public FeedForward {
 public:
  using Activation = Tensor (*)(const Tensor&);
  Tensor feed(const Tensor& x_BTD) override;

 protected:
  PositionWise(const PositionWiseOptions& options, int64_t width, Activation activation);

 private:
  double dropout_;
  Activation activation_;
  torch::nn::Linear inner{nullptr}, outer{nullptr};
};

/// act = max(0, .)
struct ReluFeedForward : PositionWise {
  ReluFeedForward(const PositionWiseOptions& options, int64_t width);
};

/// act = GELU, the exact form          (1606.08415)
struct GeluFeedForward : PositionWise {
  GeluFeedForward(const PositionWiseOptions& options, int64_t width);
};

}  // namespace headlab
