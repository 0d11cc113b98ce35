#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include "modules/attention/attention.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/layer/residual.h"

namespace headlab {

/// What all layers of a model share.
struct LayerStyle {
  int64_t width = 0;
  double dropout = 0;
  Choice norm{norm_catalogue, "layer_norm"};
  Choice residual{residual_catalogue, "pre"};
};

struct EncoderOptions : Described<EncoderOptions> {
  int64_t layers = 2;
  AttentionOptions attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  void describe(Fields& fields) override;
};

struct DecoderOptions : Described<DecoderOptions> {
  int64_t layers = 2;
  AttentionOptions attention;
  AttentionOptions cross_attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  void describe(Fields& fields) override;
};

/// A decoder that has no encoder to look at.
struct SelfDecoderOptions : Described<SelfDecoderOptions> {
  int64_t layers = 2;
  AttentionOptions attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  void describe(Fields& fields) override;
};

/// The caches of a stack: one State an attention.
struct StackState {
  std::vector<State> self, cross;
  int64_t length = 0;  // tokens seen
  void reorder(const Tensor& rows_B);
};

/// All that a stack needs beside x.
struct StackCall {
  Tensor positions;      // of x's tokens, [T] or [B,T]
  Visibility self;
  Tensor memory_BSD;     // undefined: no cross-attention, or its state is filled
  Visibility cross;
  Tensor memory_positions;
  StackState* state = nullptr;
  Forward& run;
};

/// One layer: self-attention, cross-attention where there is one, feed-forward, each with norm, dropout and residual.
class Layer : public torch::nn::Module {
 public:
  /// `cross`: nullptr for a layer without cross-attention. kept_*: original numbers of the heads to make; nullopt: all.
  Layer(const LayerStyle& style, Stack self_stack, int64_t layer, const AttentionOptions& self, const AttentionOptions* cross,
        const Choice& feed_forward, const std::optional<std::vector<int64_t>>& kept_self,
        const std::optional<std::vector<int64_t>>& kept_cross);
  Tensor forward(Tensor x_BTD, const StackCall& call);
  std::vector<std::pair<Site, Mixer*>> mixers() const;

 private:
  Site self_site_, cross_site_;
  double dropout_;
  std::shared_ptr<Residual> residual_;
  std::shared_ptr<Mixer> self_attention{nullptr}, cross_attention{nullptr};
  std::shared_ptr<FeedForward> feed_forward{nullptr};
  std::shared_ptr<Norm> self_attention_norm{nullptr}, cross_attention_norm{nullptr}, feed_forward_norm{nullptr};
};

/// Layers one after another, and the norm that pre-norm needs at the end. x_BTD -> x_BTD.
class LayerStack : public torch::nn::Module {
 public:
  LayerStack(const LayerStyle& style, Stack self_stack, int64_t layers, const AttentionOptions& self,
             const AttentionOptions* cross, const Choice& feed_forward, const HeadTable& kept);
  Tensor forward(Tensor x_BTD, const StackCall& call);
  std::vector<std::pair<Site, Mixer*>> mixers() const;
  /// Empty caches for a new text.
  StackState start() const;

 private:
  bool has_cross_;
  torch::nn::ModuleList layers{nullptr};
  std::shared_ptr<Norm> norm{nullptr};
};

}  // namespace headlab
