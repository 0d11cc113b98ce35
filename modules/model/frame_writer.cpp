#include "modules/model/frame_writer.h"

#include "modules/loss/ctc.h"
#include "modules/tensor/torch.h"

namespace headlab {

void FrameWriterOptions::describe_reading(Fields& fields, const std::string& dropout_of) {
  fields.add("d_model", d_model, "width of what the encoder gives, and of what follows it").at_least(1);
  fields.add("frame_width", frame_width, "numbers of a frame").at_least(1);
  fields.add("max_length", max_length, "longest text that the model takes, in frames and in symbols").at_least(1);
  fields.add("encoder", encoder, "what reads the frames");
  fields.add("dropout", dropout, dropout_of).at_least(0).below(1);
}

void FrameWriterOptions::reading_rules(Problems& problems) const {
  frame_readers().check(encoder, FrameReaderAround(d_model, problems));
}

FrameWriter::FrameWriter(const FrameWriterOptions& options, const ModelContext& context, bool ctc)
    : context_(context), frame_width_(options.frame_width), max_length_(options.max_length) {
  const FrameReaderPlace place{options.frame_width, options.d_model, options.max_length, options.dropout, context.kept};
  reader = register_module("reader", frame_readers().make(options.encoder, place));
  if (ctc) ctc_output = register_module("ctc_output", torch::nn::Linear(options.d_model, context.target_vocabulary));
}

FrameWriter::Heard FrameWriter::read(const Batch& batch, Forward& run) {
  run.side = batch.side;
  const auto frames = frames_of(batch.side, batch.source_BS, frame_width_).to(dtype());
  if (frames.size(1) > max_length_)
    throw ShapeError("encoder: expected at most " + std::to_string(max_length_) + " frames, got " +
                     std::to_string(frames.size(1)) + "; raise model.max_length");
  return {reader->read(frames, batch.source_mask_BS, run), batch.source_mask_BS};
}

Tensor FrameWriter::frame_log_probabilities(const Heard& heard) {
  if (!has_ctc()) throw UsageError("model: expected one with a CTC loss (frame_ctc, or ctc above 0), got one without");
  return ctc_log_probabilities(ctc_output->forward(heard.h_BSD));
}

}  // namespace headlab
