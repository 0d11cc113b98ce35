#pragma once

#include "modules/attention/attention.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/layer/mixers.h"
#include "modules/layer/residual.h"
#include "modules/layer/segments.h"
#include "modules/tensor/torch.h"

namespace headlab {

const Catalogue& block_catalogue();

/// What all layers of a stack share.
struct LayerStyle {
  int64_t width = 0;
  double dropout = 0;
  Choice norm{norm_catalogue, "layer_norm"};
  Choice residual{residual_catalogue, "pre"};
  std::string dropout_kind = "element";
  SegmentOptions segments;  // of causal self-attentions
};

/// What one layer is made of.
struct LayerParts {
  Choice block{block_catalogue, "transformer"};
  Choice mixer{mixer_catalogue, "attention"};
  AttentionOptions attention;
  std::optional<AttentionOptions> cross_attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
};

/// The caches of a stack: one State an attention.
struct StackState {
  std::vector<State> self, cross;
  int64_t length = 0;  // tokens seen
  void reorder(const Tensor& rows_B);
};

/// All that a stack needs beside x.
struct StackCall {
  Tensor positions;  // of x's tokens, [T] or [B,T]
  Visibility self;
  Tensor memory_BSD;  // undefined: no cross-attention, or its state is filled
  Visibility cross;
  Tensor memory_positions;
  StackState* state = nullptr;
  Forward& run;
};

/// Where a block stands. kept_*: original numbers of the heads to make; nullopt: all.
struct BlockPlace {
  LayerStyle style;
  Stack stack;  // of its self-attention
  int64_t layer = 0;
  LayerParts parts;
  int64_t memory_width;  // of what a cross-attention looks at
  std::optional<std::vector<int64_t>> kept_self, kept_cross;
};

/// One layer of a stack: sublayers, each with norm, dropout and residual sum. x_BTD -> x_BTD.
class Block : public torch::nn::Module {
 public:
  virtual Tensor forward(Tensor x_BTD, const StackCall& call) = 0;
  virtual std::vector<std::pair<Site, Mixer*>> mixers() const = 0;
  /// As Mixer::flops; `memory`: the length of what the cross-attention looks at.
  virtual int64_t flops(int64_t T, int64_t memory, bool causal) const = 0;

 protected:
  explicit Block(const LayerStyle& style);
  /// Registers the norms of a sublayer, and the scale of its residual sum where there is one.
  SublayerNorms norms_of(const LayerStyle& style, const std::string& sublayer, Stack stack);
  SublayerDropout dropout_;
  std::shared_ptr<Residual> residual_;
};

using Blocks = Registry<Block, const BlockPlace&>;
const Blocks& blocks();

/// The layer of 1706.03762: self-attention (or the mixer in its place), cross-attention and feed-forward where there
/// are such.
class Layer : public Block {
 public:
  Layer(const NoOptions&, const BlockPlace& place);
  Tensor forward(Tensor x_BTD, const StackCall& call) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override;
  int64_t flops(int64_t T, int64_t memory, bool causal) const override;

 private:
  Site self_site_, cross_site_;
  SegmentOptions segments_;
  std::shared_ptr<Mixer> self_attention{nullptr}, cross_attention{nullptr};
  std::shared_ptr<FeedForward> feed_forward{nullptr};
  SublayerNorms self_attention_norms_, cross_attention_norms_, feed_forward_norms_;
};

}  // namespace headlab
