#pragma once

#include "modules/model/model.h"

namespace headlab {

struct EncoderDecoderOptions : Described<EncoderDecoderOptions>, ModelOptions {
  EncoderOptions encoder;
  DecoderOptions decoder;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  int64_t encoder_width() const { return encoder.d_model.value_or(d_model); }
};

/// The Transformer of 1706.03762: an encoder of the source, a causal decoder that attends to it.
/// source_BS, target_BT -> logits_BTV.
class EncoderDecoder : public Model {
 public:
  EncoderDecoder(const EncoderDecoderOptions& options, const ModelContext& context);

  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override;
  int64_t max_length() const override { return options_.embedding.max_length; }
  int64_t target_vocabulary() const override;
  int64_t flops(int64_t S, int64_t T) const override;
  int64_t source_vocabulary() const { return context_.source_vocabulary; }
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

  /// source_BS (mask: true = a token) -> memory_BSD
  /// The memory of a batch's sources, with what its `side` tells of them.
  Tensor encode(const Batch& batch, Forward& run);
  Tensor encode(const Tensor& source_BS, const Tensor& mask_BS, Forward& run);
  /// The next T target ids -> hidden_BTD. With a state: `positions` [T] are where they stand, and memory may be
  /// undefined once the state has seen it. query_mask_BT is for losses alone: padding on the right hides nothing from
  /// real tokens.
  Tensor decode(const Tensor& target_BT, const Tensor& positions, const Tensor& memory_BSD,
                const Tensor& source_mask_BS, const Tensor& query_mask_BT, StackState* state, Forward& run);
  StackState start() const { return decoder->start(); }

 private:
  const TokenTable& source_table() const;
  const TokenTable& target_table() const;
  const TokenTable& output_table() const;
  EncoderDecoderOptions options_;
  ModelContext context_;
  std::shared_ptr<TokenTable> tokens{nullptr}, source_tokens{nullptr}, target_tokens{nullptr}, output_tokens{nullptr};
  std::shared_ptr<Embed> source_embed{nullptr}, target_embed{nullptr};
  std::shared_ptr<LayerStack> encoder{nullptr}, decoder{nullptr};
};

}  // namespace headlab
