#pragma once

#include "modules/model/frame_writer.h"
#include "modules/recurrent/decoder.h"

namespace headlab {

struct FrameTranscriberOptions : Described<FrameTranscriberOptions>, FrameWriterOptions {
  Choices heads{energy_catalogue, false, {}};
  Choice merge{merge_catalogue, "decoder"};
  double sharpen = 2.0, ctc = 0.0;
  FrameTranscriberOptions();
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
};

/// Frames to symbols by recurrent networks with several heads          (1804.08050)
///   h_BSD    what the encoder makes of the frames
///   c_l      the embedding of a symbol
///   logits   W q_l + b of what modules/recurrent/decoder.h makes of both; dropout on c and q
/// Heads of different energies are the paper's HMHD. q, c and LSTMs are D wide; LSTMs start at zeros.
///
/// The heads are those of dec.cross, layer 0: they can be scaled, masked, looked at and removed. Of an encoder of
/// layers those of enc.self too. Masked equals removed: a head before one decoder gives W_O nothing; one with its own
/// decoder loses its whole part of the logits.
///
/// `ctc` > 0 adds, in training, ctc * -log p(symbols | h) of a linear map of h to the vocabulary (modules/loss/ctc.h),
/// as the loss "ctc", a mean over symbols. The symbols are those that the decoder reads after bos.
class FrameTranscriber : public FrameWriter {
 public:
  FrameTranscriber(const FrameTranscriberOptions& options, const ModelContext& context);
  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override;
  int64_t flops(int64_t S, int64_t T) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;

  /// A cache before the first step.
  State start(const Heard& heard, Forward& run);
  /// The next T target ids, after `past` others -> what logits_of takes. A filled cache needs the mask of `heard`
  /// alone. query_mask_BT hides nothing: losses and measures leave the others out.
  Tensor decode(const Tensor& target_BT, const Heard& heard, const Tensor& query_mask_BT, State* state, Forward& run,
                int64_t past = 0);

 private:
  AttentionCall call_of(const Heard& heard, Forward& run) const;
  void add_ctc(const Heard& heard, const Batch& batch, Forward& run);
  FrameTranscriberOptions options_;
  std::shared_ptr<TokenTable> tokens{nullptr};
  std::shared_ptr<RecurrentDecoder> decoder{nullptr};
};

}  // namespace headlab
