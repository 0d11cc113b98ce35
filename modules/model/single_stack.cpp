#include "modules/model/single_stack.h"

#include "modules/layer/whole_text.h"
#include "modules/tensor/tied.h"
#include "modules/tensor/torch.h"

namespace headlab {

/// Keeps the caches of one decoder, and reads on.
class DecoderStepper : public Stepper {
 public:
  explicit DecoderStepper(SingleStack& model) : model_(model), state_(model.start()) {}

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
  fields.add("segments", segments, "how a text is read: as one, or segment after segment with a memory");
  fields.add("output", output, "what the model says of a text");
}

void DecoderOnlyOptions::rules(Problems& problems) const {
  stack_rules(decoder, d_model, "decoder", problems);
  const auto entries = mixers_and_gates(decoder, "decoder");
  causal_rules(entries, problems);
  if (blocks().traits(decoder.block.type()).whole_text)
    problems.add(
        "decoder.block",
        decoder.block.type() +
            " sees what follows a token; a decoder must not. Use it in an encoder: encoder_only, encoder_decoder");
  if (segments.length) segment_rules(entries, problems);
}

void EncoderOnlyOptions::describe(Fields& fields) {
  describe_shared(fields);
  fields.add("encoder", encoder, "the layers");
  fields.add("output", output, "what the model says of a text");
}

void EncoderOnlyOptions::rules(Problems& problems) const { stack_rules(encoder, d_model, "encoder", problems); }

SingleStack::SingleStack(const ModelOptions& options, const Choice& output_choice, const ModelContext& context,
                         Stack stack, int64_t layers)
    : context_(context), kind_(stack), layers_(layers), max_length_(options.embedding.max_length) {
  tokens = register_module("tokens", std::make_shared<TokenTable>(context.target_vocabulary, options.d_model));
  const bool over_vocabulary = output_choice.type() == "language_model";
  if (options.embedding.tie == "none" && over_vocabulary)
    output_tokens =
        register_module("output_tokens", std::make_shared<TokenTable>(context.target_vocabulary, options.d_model));
  embed = register_module(
      "embed", std::make_shared<Embed>(options.embedding, options.d_model, options.dropout, options.dropout_kind));
  output = register_module("output", outputs().make(output_choice, {options.d_model, context.classes,
                                                                    output_tokens ? output_tokens : tokens}));
}

Tensor SingleStack::read(const Tensor& ids_BT, const Tensor& positions, const Tensor& mask_BT, StackState* state,
                         Forward& run) {
  const auto products = autocast();
  StackCall call{.positions = positions,
                 .self = {},
                 .memory_BSD = {},
                 .cross = {},
                 .memory_positions = {},
                 .state = state,
                 .run = run};
  call.self.causal = causal();
  call.self.query_mask_BT = mask_BT;
  // Padding stands on the right: a causal model never sees it.
  if (!causal()) call.self.key_mask_BS = mask_BT;
  return stack().forward(embed->forward(*tokens, ids_BT, positions, state ? state->length : 0), call);
}

Tensor SingleStack::hidden(const Batch& batch, Forward& run) {
  run.side = batch.side;
  return read(batch.target_BT, positions_of(batch.target_BT), batch.target_mask_BT, nullptr, run);
}

int64_t SingleStack::flops(int64_t, int64_t T) const { return stack().flops(T, 0, causal()) + output->flops(T); }

Tensor SingleStack::logits_of(const Tensor& hidden, Forward& run) {
  const auto products = autocast();
  return run.see(At::logits, {kind_, layers_}, widened(output->forward(hidden, {})));
}

Tensor SingleStack::logits(const Batch& batch, Forward& run) {
  const auto products = autocast();
  return run.see(At::logits, {kind_, layers_}, widened(output->forward(hidden(batch, run), batch.target_mask_BT)));
}

Tensor SingleStack::row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) {
  const auto products = autocast();
  return run.see(At::logits, {kind_, layers_}, widened(output->rows(hidden(batch, run), batch.target_mask_BT, rows_N)));
}

DecoderOnly::DecoderOnly(const DecoderOnlyOptions& options, const ModelContext& context)
    : SingleStack(options, options.output, context, Stack::dec_self, options.decoder.layers), options_(options) {
  auto style = options.style();
  style.segments = options.segments;
  decoder = register_module(
      "decoder", std::make_shared<LayerStack>(style, Stack::dec_self, options.decoder.parts(), context.kept));
  tie_modules(*this);
}

std::unique_ptr<Stepper> DecoderOnly::stepper(const Batch&, Forward&) {
  if (!output->over_vocabulary())
    throw UsageError("model.output: a model whose output is \"" + options_.output.type() +
                     "\" can't generate text; expected language_model");
  return std::make_unique<DecoderStepper>(*this);
}

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
    : SingleStack(options, options.output, context, Stack::enc_self, options.encoder.layers), options_(options) {
  encoder = register_module(
      "encoder", std::make_shared<LayerStack>(options.style(), Stack::enc_self, options.encoder.parts(), context.kept));
  tie_modules(*this);
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
