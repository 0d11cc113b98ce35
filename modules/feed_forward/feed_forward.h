#pragma once

#include "modules/tensor/init.h"
#include "modules/tensor/registry.h"
#include "modules/tensor/shapes.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// The same network at each position: x_BTD -> y_BTD.
struct FeedForward : torch::nn::Module {
  virtual Tensor feed(const Tensor& x_BTD) = 0;
  /// Whether there is one: without, a layer has no such sublayer, nor its norm.
  virtual bool is_there() const { return true; }
  /// Floating-point operations of the products of matrices for T tokens, a multiply-add counted as 2.
  virtual int64_t flops(int64_t T) const = 0;
};

using FeedForwards = Registry<FeedForward, int64_t>;  // context: the width D
const FeedForwards& feed_forwards();
const Catalogue& feed_forward_catalogue();

struct PositionWiseOptions : Described<PositionWiseOptions> {
  std::optional<int64_t> width;
  double dropout = 0.0;
  bool bias = true;
  void describe(Fields& fields) override;

 protected:
  void describe_all(Fields& fields, const std::string& absent_width);
};

/// The same, of other defaults.
struct SwiGluOptions : PositionWiseOptions {
  SwiGluOptions() { bias = false; }
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<SwiGluOptions>(*this); }
};

/// act(x W_1 + b_1) W_2 + b_2          (1706.03762, eq. 2)
class PositionWise : public FeedForward {
 public:
  using Activation = Tensor (*)(const Tensor&);
  Tensor feed(const Tensor& x_BTD) override;
  int64_t flops(int64_t T) const override;

 protected:
  PositionWise(const PositionWiseOptions& options, int64_t width, Activation activation);

 private:
  double dropout_;
  Activation activation_;
  torch::nn::Linear inner{nullptr}, outer{nullptr};
};

/// Nothing at all: y = 0, no sublayer.
struct NoFeedForward : FeedForward {
  NoFeedForward(const NoOptions&, int64_t) {}
  Tensor feed(const Tensor& x_BTD) override { return torch::zeros_like(x_BTD); }
  bool is_there() const override { return false; }
  int64_t flops(int64_t) const override { return 0; }
};

/// act = max(0, .)
struct ReluFeedForward : PositionWise {
  ReluFeedForward(const PositionWiseOptions& options, int64_t width);
};

/// act = GELU, the exact form          (1606.08415)
struct GeluFeedForward : PositionWise {
  GeluFeedForward(const PositionWiseOptions& options, int64_t width);
};

/// (swish(x W + b) * (x V + c)) W_2 + b_2, swish(a) = a sigmoid(a); without biases by default   (2002.05202, eq. 6)
/// W is `gate`, V `inner`, W_2 `outer`. The default inner width, 8 D / 3, gives the parameters of two layers of 4 D.
class SwiGlu : public FeedForward {
 public:
  SwiGlu(const SwiGluOptions& options, int64_t width);
  Tensor feed(const Tensor& x_BTD) override;
  int64_t flops(int64_t T) const override;

 private:
  double dropout_;
  torch::nn::Linear gate{nullptr}, inner{nullptr}, outer{nullptr};
};

}  // namespace headlab
