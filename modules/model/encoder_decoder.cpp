#include "modules/model/encoder_decoder.h"

#include "modules/layer/whole_text.h"
#include "modules/tensor/tied.h"
#include "modules/tensor/torch.h"

namespace headlab {
namespace {

class EncoderDecoderStepper : public Stepper {
 public:
  EncoderDecoderStepper(EncoderDecoder& model, const Batch& batch, Forward& run)
      : model_(model), mask_BS_(batch.source_mask_BS), memory_BSD_(model.encode(batch, run)), state_(model.start()) {}

  Tensor step(const Tensor& ids_BT, Forward& run) override {
    const auto hidden =
        model_.decode(ids_BT, positions_of(ids_BT, state_.length), memory_BSD_, mask_BS_, {}, &state_, run);
    return model_.logits_of(hidden.select(1, -1), run);
  }

  void reorder(const Tensor& rows_B) override {
    state_.reorder(rows_B);
    memory_BSD_ = memory_BSD_.index_select(0, rows_B);
    if (mask_BS_.defined()) mask_BS_ = mask_BS_.index_select(0, rows_B);
  }

  int64_t max_length() const override { return model_.max_length(); }

 private:
  EncoderDecoder& model_;
  Tensor mask_BS_, memory_BSD_;
  StackState state_;
};

}  // namespace

void EncoderDecoderOptions::describe(Fields& fields) {
  describe_shared(fields);
  fields.add("encoder", encoder, "the layers that read the source");
  fields.add("decoder", decoder, "the layers that write the target");
}

void EncoderDecoderOptions::rules(Problems& problems) const {
  stack_rules(encoder, encoder_width(), "encoder", problems);
  stack_rules(decoder, d_model, "decoder", problems);
  causal_rules(mixers_and_gates(decoder, "decoder"), problems);
  if (embedding.tie == "all" && encoder_width() != d_model)
    problems.add("embedding.tie", "\"all\" expects one width for source and target, got an encoder of " +
                                      std::to_string(encoder_width()) + " and d_model " + std::to_string(d_model) +
                                      "; use \"target\" or \"none\"");
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderOptions& options, const ModelContext& context)
    : options_(options), context_(context) {
  const auto source_width = options.encoder_width();
  const auto table = [&](const std::string& name, int64_t vocabulary, int64_t width) {
    return register_module(name, std::make_shared<TokenTable>(vocabulary, width));
  };
  const auto& tie = options.embedding.tie;
  if (tie == "all") {
    if (context.source_vocabulary != context.target_vocabulary)
      throw ShapeError("model.embedding.tie: \"all\" expects one vocabulary for source and target, got " +
                       std::to_string(context.source_vocabulary) + " and " + std::to_string(context.target_vocabulary) +
                       " tokens; use a joint tokenizer or \"target\"");
    if (source_width != options.d_model)
      throw ShapeError("model.embedding.tie: \"all\" expects one width for source and target, got " +
                       std::to_string(source_width) + " and " + std::to_string(options.d_model) +
                       "; use \"target\" or \"none\"");
    tokens = table("tokens", context.target_vocabulary, options.d_model);
  } else {
    source_tokens = table("source_tokens", context.source_vocabulary, source_width);
    target_tokens = table("target_tokens", context.target_vocabulary, options.d_model);
    if (tie == "none") output_tokens = table("output_tokens", context.target_vocabulary, options.d_model);
  }
  const auto embed = [&](const std::string& name, int64_t width) {
    return register_module(name,
                           std::make_shared<Embed>(options.embedding, width, options.dropout, options.dropout_kind));
  };
  source_embed = embed("source_embed", source_width);
  target_embed = embed("target_embed", options.d_model);
  const auto style = options.style();
  auto source_style = style;
  source_style.width = source_width;
  encoder = register_module(
      "encoder", std::make_shared<LayerStack>(source_style, Stack::enc_self, options.encoder.parts(), context.kept));
  decoder = register_module("decoder", std::make_shared<LayerStack>(style, Stack::dec_self, options.decoder.parts(),
                                                                    context.kept, /*memory_width=*/source_width));
  tie_modules(*this);
}

int64_t EncoderDecoder::flops(int64_t S, int64_t T) const {
  return encoder->flops(S, 0, false) + decoder->flops(T, S, true) + output_table().flops(T);
}

const TokenTable& EncoderDecoder::source_table() const { return tokens ? *tokens : *source_tokens; }
const TokenTable& EncoderDecoder::target_table() const { return tokens ? *tokens : *target_tokens; }
const TokenTable& EncoderDecoder::output_table() const { return output_tokens ? *output_tokens : target_table(); }
int64_t EncoderDecoder::target_vocabulary() const { return output_table().vocabulary(); }

Tensor EncoderDecoder::encode(const Tensor& source_BS, const Tensor& mask_BS, Forward& run) {
  const auto products = autocast();
  const auto positions = positions_of(source_BS);
  StackCall call{.positions = positions,
                 .self = {},
                 .memory_BSD = {},
                 .cross = {},
                 .memory_positions = {},
                 .state = nullptr,
                 .run = run};
  call.self.key_mask_BS = mask_BS;
  call.self.query_mask_BT = mask_BS;
  return encoder->forward(source_embed->forward(source_table(), source_BS, positions), call);
}

Tensor EncoderDecoder::encode(const Batch& batch, Forward& run) {
  run.side = batch.side;
  const auto memory = encode(batch.source_BS, batch.source_mask_BS, run);
  run.side.clear();  // the decoder reads another text
  return memory;
}

Tensor EncoderDecoder::decode(const Tensor& target_BT, const Tensor& positions, const Tensor& memory_BSD,
                              const Tensor& source_mask_BS, const Tensor& query_mask_BT, StackState* state,
                              Forward& run) {
  const auto products = autocast();
  StackCall call{.positions = positions,
                 .self = {},
                 .memory_BSD = memory_BSD,
                 .cross = {},
                 .memory_positions = {},
                 .state = state,
                 .run = run};
  call.self.causal = true;
  call.self.query_mask_BT = query_mask_BT;
  call.cross.key_mask_BS = source_mask_BS;
  call.cross.query_mask_BT = query_mask_BT;
  if (memory_BSD.defined()) call.memory_positions = positions_of(memory_BSD.select(-1, 0));
  const auto x = target_embed->forward(target_table(), target_BT, positions, state ? state->length : 0);
  auto h = decoder->forward(x, call);
  if (state && !recording()) state->length += target_BT.size(1);
  return h;
}

Tensor EncoderDecoder::hidden(const Batch& batch, Forward& run) {
  const auto memory = encode(batch, run);
  return decode(batch.target_BT, positions_of(batch.target_BT), memory, batch.source_mask_BS, batch.target_mask_BT,
                nullptr, run);
}

Tensor EncoderDecoder::logits_of(const Tensor& hidden, Forward& run) {
  const auto products = autocast();
  return run.see(At::logits, {Stack::dec_self, options_.decoder.layers}, widened(output_table().logits(hidden)));
}

std::unique_ptr<Stepper> EncoderDecoder::stepper(const Batch& batch, Forward& run) {
  return std::make_unique<EncoderDecoderStepper>(*this, batch, run);
}

std::vector<std::pair<Site, Mixer*>> EncoderDecoder::mixers() const {
  auto all = encoder->mixers();
  const auto more = decoder->mixers();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::shared_ptr<torch::nn::Module> EncoderDecoder::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<EncoderDecoder>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
