#pragma once

#include "modules/layer/block.h"

namespace headlab {

struct ConformerOptions : Described<ConformerOptions> {
  int64_t kernel = 15;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Each channel by itself, over the tokens around: y_td = sum_j w_dj x_{t + j - (k-1)/2, d} + b_d, zeros beyond the
/// text. x_BTD -> y_BTD, k odd. Starts uniform in +-1/sqrt(k), the bias at 0.
class DepthwiseConvolution : public torch::nn::Module, public Initialised {
 public:
  DepthwiseConvolution(int64_t width, int64_t kernel);
  Tensor convolve(const Tensor& x_BTD) const;
  int64_t flops(int64_t T) const { return 2 * T * weight.numel(); }
  void draw(const std::function<at::Generator(const std::string&)>& generator) override;

 private:
  Tensor weight, bias;  // [D,1,k], [D]
};

/// glu(x W + b) -> depthwise convolution -> norm -> swish -> W' + b', glu(a, g) = a sigmoid(g)          (2005.08100,
/// section 2.2) The norm is the stack's, of each token by itself, where the paper has batch norm: so neither other
/// texts nor padding can matter. mask_BT (bool): tokens; the others are zeros to the convolution; undefined: all are.
class ConvolutionModule : public torch::nn::Module {
 public:
  ConvolutionModule(const LayerStyle& style, int64_t kernel);
  Tensor forward(const Tensor& x_BTD, const Tensor& mask_BT);
  int64_t flops(int64_t T) const;

 private:
  torch::nn::Linear inner{nullptr}, outer{nullptr};
  std::shared_ptr<DepthwiseConvolution> depthwise{nullptr};
  std::shared_ptr<Norm> norm{nullptr};
};

/// A layer for frames of speech          (2005.08100, section 2.4; 2209.06096)
///   x = x + feed_forward(x) / 2,  x = x + mixer(x),  x = x + convolution(x),  x = x + feed_forward_after(x) / 2,  y =
///   norm(x)
/// each sublayer with its norm and dropout as `residual` joins them ("pre" is the papers'). Without feed-forward
/// (`none`) those two are left out. It sees tokens on both sides, so it stands in stacks that do: encoders. x_BTD ->
/// y_BTD. Throws ShapeError where it is to read causally or with a cache, and for a cross-attention.
class Conformer : public Block {
 public:
  Conformer(const ConformerOptions& options, const BlockPlace& place);
  Tensor forward(Tensor x_BTD, const StackCall& call) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return {{site_, self_attention.get()}}; }
  int64_t flops(int64_t T, int64_t memory, bool causal) const override;

 private:
  Site site_;
  std::shared_ptr<Mixer> self_attention{nullptr};
  std::shared_ptr<FeedForward> feed_forward{nullptr}, feed_forward_after{nullptr};
  std::shared_ptr<ConvolutionModule> convolution{nullptr};
  std::shared_ptr<Norm> norm{nullptr};
  SublayerNorms self_attention_norms_, feed_forward_norms_, feed_forward_after_norms_, convolution_norms_;
};

}  // namespace headlab
