#pragma once

#include "modules/embedding/embedding.h"

namespace headlab {

/// What a batch of frames is called in Batch::side: [B,T,F]; target_BT, or source_BS where there are two
/// texts, then holds a placeholder for each frame.
inline const char* const frames_name = "frames";

/// Options of a model that reads frames.
struct ReadsFrames {
  virtual ~ReadsFrames() = default;
  /// How many numbers a frame has, and the field that says it: "frame_width".
  virtual std::pair<std::string, int64_t> width_of_frames() const = 0;
};

/// The frames of a batch. `places`: the placeholders. Throws UsageError where the batch has none, ShapeError where they
/// are not [B, T, width].
Tensor frames_of(const std::map<std::string, Tensor>& side, const Tensor& places_BT, int64_t width);

struct FrameEmbeddingOptions : Described<FrameEmbeddingOptions> {
  int64_t frame_width = 16;
  Choice position{added_position_catalogue, "sinusoidal"};
  int64_t max_length = 512;
  std::optional<double> dropout;
  void describe(Fields& fields) override;
};

/// dropout(x W + b + PE[positions]), where ids have a row of a table. frames_BTF -> [B,T,D]. Throws ShapeError for a
/// text longer than max_length, as Embed does.
class FrameEmbed : public torch::nn::Module {
 public:
  /// `dropout`: p, where the options leave theirs out; `kind`: one of dropout_kinds().
  FrameEmbed(const FrameEmbeddingOptions& options, int64_t width, double dropout, const std::string& kind = "element");
  Tensor forward(const Tensor& frames_BTF, const Tensor& positions);
  int64_t flops(int64_t T) const { return 2 * T * project->weight.numel(); }

 private:
  int64_t max_length_;
  double dropout_;
  std::string kind_;
  torch::nn::Linear project{nullptr};
  std::shared_ptr<AddedPosition> position{nullptr};
};

}  // namespace headlab
