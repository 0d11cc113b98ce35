#pragma once

#include "modules/model/model.h"
#include "modules/output/output.h"

namespace headlab {

struct DecoderOnlyOptions : Described<DecoderOnlyOptions>, ModelOptions {
  StackOptions decoder;
  SegmentOptions segments;
  Choice output{output_catalogue, "language_model"};
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

struct EncoderOnlyOptions : Described<EncoderOnlyOptions>, ModelOptions {
  StackOptions encoder;
  Choice output{output_catalogue, "language_model"};
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// One stack of self-attention layers over one text: embeddings, layers, output.
/// target_BT -> logits_BTV with the (tied) matrix, or what another output says (modules/output).
class SingleStack : public Model {
 public:
  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  Tensor logits(const Batch& batch, Forward& run) override;
  Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return stack().mixers(); }
  int64_t max_length() const override { return max_length_; }
  int64_t target_vocabulary() const override { return context_.target_vocabulary; }
  int64_t flops(int64_t S, int64_t T) const override;
  /// Whether it can write text: it is causal, and its output is over the vocabulary.
  bool generates() const { return causal() && output->over_vocabulary(); }
  /// The next T ids -> hidden_BTD, with their positions [T] or [B,T] and the caches of what was read before (nullptr:
  /// none).
  Tensor read(const Tensor& ids_BT, const Tensor& positions, const Tensor& mask_BT, StackState* state, Forward& run);
  StackState start() const { return stack().start(); }

 protected:
  SingleStack(const ModelOptions& options, const Choice& output, const ModelContext& context, Stack stack,
              int64_t layers);
  virtual LayerStack& stack() const = 0;
  virtual bool causal() const = 0;
  ModelContext context_;
  std::shared_ptr<Output> output{nullptr};

 private:
  Stack kind_;
  int64_t layers_, max_length_;
  std::shared_ptr<TokenTable> tokens{nullptr}, output_tokens{nullptr};
  std::shared_ptr<Embed> embed{nullptr};
};

/// A causal language model.
class DecoderOnly : public SingleStack {
 public:
  DecoderOnly(const DecoderOnlyOptions& options, const ModelContext& context);
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  LayerStack& stack() const override { return *decoder; }
  bool causal() const override { return true; }
  DecoderOnlyOptions options_;
  std::shared_ptr<LayerStack> decoder{nullptr};
};

/// A bidirectional encoder: for classes, tags and spans, or with the vocabulary at each position (masked language
/// model).
class EncoderOnly : public SingleStack {
 public:
  EncoderOnly(const EncoderOnlyOptions& options, const ModelContext& context);
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  LayerStack& stack() const override { return *encoder; }
  bool causal() const override { return false; }
  EncoderOnlyOptions options_;
  std::shared_ptr<LayerStack> encoder{nullptr};
};

}  // namespace headlab
