#pragma once

#include "modules/attention/attention.h"
#include "modules/feed_forward/feed_forward.h"
#include "modules/layer/block.h"
#include "modules/layer/mixers.h"
#include "modules/layer/residual.h"
#include "modules/layer/segments.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// Layers that differ from the others of their stack. In a spec it starts as a copy of the stack's own options, and
/// what the spec writes is laid over that.
struct LayerOverride : Described<LayerOverride> {
  std::vector<int64_t> layers;
  Choice mixer{mixer_catalogue, "attention"};
  AttentionOptions attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  void describe(Fields& fields) override;
};

/// The same, for layers that have a cross-attention.
struct CrossLayerOverride : Described<CrossLayerOverride> {
  std::vector<int64_t> layers;
  Choice mixer{mixer_catalogue, "attention"};
  AttentionOptions attention;
  AttentionOptions cross_attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  void describe(Fields& fields) override;
};

/// A stack of self-attention layers.
struct StackOptions : Described<StackOptions> {
  int64_t layers = 2;
  Choice block{block_catalogue, "transformer"};
  Choice mixer{mixer_catalogue, "attention"};
  AttentionOptions attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  std::vector<LayerOverride> per_layer;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;  // of layers to each other; those of widths: stack_rules
  std::vector<LayerParts> parts() const;          // one a layer
};

/// The encoder of an encoder-decoder, which may have a width of its own.
struct EncoderOptions : StackOptions {
  std::optional<int64_t> d_model;
  void describe(Fields& fields) override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<EncoderOptions>(*this); }
};

/// A stack of layers that look at an encoder's output too.
struct DecoderOptions : Described<DecoderOptions> {
  int64_t layers = 2;
  Choice mixer{mixer_catalogue, "attention"};
  AttentionOptions attention;
  AttentionOptions cross_attention;
  Choice feed_forward{feed_forward_catalogue, "relu"};
  std::vector<CrossLayerOverride> per_layer;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  std::vector<LayerParts> parts() const;
};

/// The rules of attentions for each layer of a stack of this width; `prefix`: where its options stand, "encoder".
void stack_rules(const StackOptions& options, int64_t width, const std::string& prefix, Problems& problems);
void stack_rules(const DecoderOptions& options, int64_t width, const std::string& prefix, Problems& problems);

/// Layers one after another, and the norm that pre-norm needs at the end. x_BTD -> x_BTD.
class LayerStack : public torch::nn::Module {
 public:
  /// memory_width: of what cross-attentions look at; 0: of the stack itself.
  LayerStack(const LayerStyle& style, Stack self_stack, const std::vector<LayerParts>& parts, const HeadTable& kept,
             int64_t memory_width = 0);
  Tensor forward(Tensor x_BTD, const StackCall& call);
  std::vector<std::pair<Site, Mixer*>> mixers() const;
  int64_t flops(int64_t T, int64_t memory, bool causal) const;
  /// Empty caches for a new text.
  StackState start() const;

 private:
  bool has_cross_;
  torch::nn::ModuleList layers{nullptr};
  std::shared_ptr<Norm> norm{nullptr};
};

}  // namespace headlab
