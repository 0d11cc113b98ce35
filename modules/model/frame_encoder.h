#pragma once

#include "modules/embedding/frames.h"
#include "modules/model/model.h"
#include "modules/output/output.h"

namespace headlab {

struct FrameEncoderOptions : Described<FrameEncoderOptions>, ModelOptions, ReadsFrames {
  FrameEmbeddingOptions embedding;  // in place of ModelOptions': frames have no table
  StackOptions encoder;
  Choice output{output_catalogue, "tags"};
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  std::pair<std::string, int64_t> width_of_frames() const override {
    return {"embedding.frame_width", embedding.frame_width};
  }
};

/// An encoder of frames, as of speech: what encoder_only is for ids. The frames travel in Batch::side
/// (embedding/frames.h). side["frames"] [B,T,F] -> logits of its output: classes [B,C], or a class at each frame
/// [B,T,C].
class FrameEncoder : public Model {
 public:
  FrameEncoder(const FrameEncoderOptions& options, const ModelContext& context);
  Tensor hidden(const Batch& batch, Forward& run) override;
  Tensor logits_of(const Tensor& hidden, Forward& run) override;
  Tensor logits(const Batch& batch, Forward& run) override;
  Tensor row_logits(const Batch& batch, const Tensor& rows_N, Forward& run) override;
  std::unique_ptr<Stepper> stepper(const Batch& batch, Forward& run) override;
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return encoder->mixers(); }
  int64_t max_length() const override { return options_.embedding.max_length; }
  int64_t target_vocabulary() const override { return context_.target_vocabulary; }
  int64_t flops(int64_t S, int64_t T) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override;
  int64_t frame_width() const { return options_.embedding.frame_width; }

 private:
  Tensor seen(const Tensor& logits, Forward& run) const;
  FrameEncoderOptions options_;
  ModelContext context_;
  std::shared_ptr<FrameEmbed> embed{nullptr};
  std::shared_ptr<LayerStack> encoder{nullptr};
  std::shared_ptr<Output> output{nullptr};
};

}  // namespace headlab
