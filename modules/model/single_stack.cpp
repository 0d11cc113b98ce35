#include "modules/model/single_stack.h"

#include <torch/torch.h>

namespace headlab {

/// Keeps the caches of one decoder; the friend of SingleStack that reads on.
class DecoderStepper : public Stepper {
 public:
  explicit DecoderStepper(SingleStack& model) : model_(model), state_(model.stack().start()) {}

  Tensor step(const Tensor& ids_BT, Forward& run) override {
    const auto hidden = model_.read(ids_BT, positions_of(ids_BT, state_.length), {}, &state_, run);
    state_.length += ids_BT.size(1);
    return model_.logits_of(hidden.select(1, -1), run);
  }
  void reorder(const Tensor& rows_B) override { state_.reorder(rows_B); }
  int64_t max_length() const override { return model_.max_length(); }

 private:
  SingleStack& model_;
  StackState state_;
};

void DecoderOnlyOptions::describe(Fields& fields) {
  describe_shared(fields);
  fields.add("decoder", decoder, "the layers");
}

void DecoderOnlyOptions::rules(Problems& problems) const {
  attention_rules(decoder.attention, d_model, false, "decoder.attention", problems);
}

void EncoderOnlyOptions::describe(Fields& fields) {
  describe_shared(fields);
  fields.add("encoder", encoder, "the layers");
}

void EncoderOnlyOptions::rules(Problems& problems) const {
  attention_rules(encoder.attention, d_model, false, "encoder.attention", problems);
}

SingleStack::SingleStack(const ModelOptions& options, const ModelContext& context, Stack stack, int64_t layers)
    : context_(context), kind_(stack), layers_(layers), max_length_(options.embedding.max_length) {
  tokens = register_module("tokens", std::make_shared<TokenTable>(context.target_vocabulary, options.d_model));
  if (options.embedding.tie == "none")
    output_tokens = register_module("output_tokens", std::make_shared<TokenTable>(context.target_vocabulary, options.d_model));
  embed = register_module("embed", std::make_shared<Embed>(options.embedding, options.d_model, options.dropout));
}

Tensor SingleStack::read(const Tensor& ids_BT, const Tensor& positions, const Tensor& mask_BT, StackState* state, Forward& run) {
  const auto products = autocast();
  StackCall call{.positions = positions, .self = {}, .memory_BSD = {}, .cross = {}, .memory_positions = {}, .state = state, .run = run};
  call.self.causal = causal();
  call.self.query_mask_BT = mask_BT;
  // Padding stands on the right: a causal model never sees it.
  if (!causal()) call.self.key_mask_BS = mask_BT;
  return stack().forward(embed->forward(*tokens, ids_BT, positions, state ? state->length : 0), call);
}

Tensor SingleStack::hidden(const Batch& batch, Forward& run) {
  return read(batch.target_BT, positions_of(batch.target_BT), batch.target_mask_BT, nullptr, run);
}

Tensor SingleStack::logits_of(const Tensor& hidden, Forward& run) {
  const auto products = autocast();
  return run.see(At::logits, {kind_, layers_}, widened((output_tokens ? output_tokens : tokens)->logits(hidden)));
}

DecoderOnly::DecoderOnly(const DecoderOnlyOptions& options, const ModelContext& context)
    : SingleStack(options, context, Stack::dec_self, options.decoder.layers), options_(options) {
  decoder = register_module("decoder", std::make_shared<LayerStack>(options.style(), Stack::dec_self, options.decoder.layers,
                                                                    options.decoder.attention, nullptr,
                                                                    options.decoder.feed_forward, context.kept));
}

std::unique_ptr<Stepper> DecoderOnly::stepper(const Batch&, Forward&) { return std::make_unique<DecoderStepper>(*this); }

std::shared_ptr<torch::nn::Module> DecoderOnly::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<DecoderOnly>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

EncoderOnly::EncoderOnly(const EncoderOnlyOptions& options, const ModelContext& context)
    : SingleStack(options, context, Stack::enc_self, options.encoder.layers), options_(options) {
  encoder = register_module("encoder", std::make_shared<LayerStack>(options.style(), Stack::enc_self, options.encoder.layers,
                                                                    options.encoder.attention, nullptr,
                                                                    options.encoder.feed_forward, context.kept));
}

std::unique_ptr<Stepper> EncoderOnly::stepper(const Batch&, Forward&) {
  throw UsageError("model: an encoder_only model can't generate text; use encoder_decoder or decoder_only");
}

std::shared_ptr<torch::nn::Module> EncoderOnly::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<EncoderOnly>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
