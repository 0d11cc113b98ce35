#pragma once

#include "modules/model/frame_writer.h"

namespace headlab {

struct FrameCtcOptions : Described<FrameCtcOptions>, FrameWriterOptions {
  void describe(Fields& fields) override {
    describe_reading(fields, "on what the encoder gives, and within its layers");
  }
  void rules(Problems& problems) const override { reading_rules(problems); }
};

/// Frames to symbols by CTC alone: an encoder and a map of each h_s to the vocabulary (10.1145/1143844.1143891)
///   p(id | frame s) = softmax(W dropout(h_s) + b)
/// Its logits are ctc_next's: log p of each symbol after those before, so that the loss of a text, its end included, is
/// that of CTC, and a search over prefixes is a search like that of any model. The most probable path alone is read out
/// by frame_log_probabilities (src/decode/best_path.h). Label smoothing is of these logits too.
class FrameCtc : public FrameWriter {
 public:
  FrameCtc(const FrameCtcOptions& options, const ModelContext& context);
  /// log p [B,T,V] of what follows each id, which are the logits.
  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  int64_t flops(int64_t S, int64_t T) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

 private:
  FrameCtcOptions options_;
};

}  // namespace headlab
