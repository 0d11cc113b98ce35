#include "modules/model/frame_encoder.h"

#include "modules/model/frame_reader.h"
#include "modules/tensor/tied.h"
#include "modules/tensor/torch.h"

namespace headlab {

void FrameEncoderOptions::describe(Fields& fields) {
  describe_shared(fields, embedding, "how frames enter, and their positions");
  fields.add("encoder", encoder, "the layers");
  fields.add("output", output, "what the model says of the frames");
}

void FrameEncoderOptions::rules(Problems& problems) const {
  stack_rules(encoder, d_model, "encoder", problems);
  if (output.type() == "language_model")
    problems.add("output",
                 "language_model needs a table of the tokens that are read, and frames have none; use tags or classes");
}

FrameEncoder::FrameEncoder(const FrameEncoderOptions& options, const ModelContext& context)
    : options_(options), context_(context) {
  embed = register_module(
      "embed", std::make_shared<FrameEmbed>(options.embedding, options.d_model, options.dropout, options.dropout_kind));
  output = register_module("output", outputs().make(options.output, {options.d_model, context.classes, nullptr}));
  encoder = register_module(
      "encoder", std::make_shared<LayerStack>(options.style(), Stack::enc_self, options.encoder.parts(), context.kept));
  tie_modules(*this);
}

Tensor FrameEncoder::hidden(const Batch& batch, Forward& run) {
  const auto products = autocast();
  run.side = batch.side;
  const auto frames = frames_of(batch.side, batch.target_BT, options_.embedding.frame_width);
  return read_frames(*embed, *encoder, frames, batch.target_mask_BT, run);
}

Tensor FrameEncoder::seen(const Tensor& logits, Forward& run) const {
  return run.see(At::logits, {Stack::enc_self, options_.encoder.layers}, widened(logits));
}

Tensor FrameEncoder::logits_of(const Tensor& hidden, Forward& run) {
  const auto products = autocast();
  return seen(output->forward(hidden, {}), run);
}

Tensor FrameEncoder::logits(const Batch& batch, Forward& run) {
  const auto products = autocast();
  return seen(output->forward(hidden(batch, run), batch.target_mask_BT), run);
}

Tensor FrameEncoder::row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) {
  const auto products = autocast();
  return seen(output->rows(hidden(batch, run), batch.target_mask_BT, rows_N), run);
}

std::unique_ptr<Stepper> FrameEncoder::stepper(const Batch&, Forward&) {
  throw UsageError("model: a frame_encoder can't generate text; it says something of each frame, or of all");
}

int64_t FrameEncoder::flops(int64_t, int64_t T) const {
  return embed->flops(T) + encoder->flops(T, 0, false) + output->flops(T);
}

std::shared_ptr<torch::nn::Module> FrameEncoder::clone(const std::optional<torch::Device>& device) const {
  auto context = context_;
  context.kept = heads();
  auto copy = std::make_shared<FrameEncoder>(options_, context);
  copy_tensors(*this, *copy);
  copy->multiply_in(multiplies_in());
  if (device) copy->to(*device);
  return copy;
}

}  // namespace headlab
