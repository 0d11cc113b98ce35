#pragma once

#include "modules/model/frame_reader.h"

namespace headlab {

/// What models that write what frames say share.
struct FrameWriterOptions : ModelOptions, ReadsFrames {
  int64_t frame_width = 12, max_length = 512;
  Choice encoder{frame_reader_catalogue, "lstm"};
  void describe_reading(Fields& fields, const std::string& dropout_of);
  void reading_rules(Problems& problems) const;
  std::pair<std::string, int64_t> width_of_frames() const override { return {"frame_width", frame_width}; }
};

/// A model that reads frames by an entry of the slot `frame_reader` and writes symbols. The frames travel in
/// Batch::side (embedding/frames.h). It may have a map of h to the vocabulary at each frame, for CTC
/// (modules/loss/ctc.h). Products stay as wide as the parameters (`multiply_in` changes nothing), since LibTorch's
/// LSTMs take one type.
class FrameWriter : public Model {
 public:
  struct Heard {
    Tensor h_BSD, mask_BS;  // mask: undefined: no padding
  };
  /// Throws ShapeError for more frames than max_length.
  Heard read(const Batch& batch, Forward& run);
  /// log p(id | frame), [B,S,V], of the blank and symbols. Throws UsageError where the model has no such map.
  Tensor frame_log_probabilities(const Heard& heard);
  bool has_ctc() const { return !ctc_output.is_empty(); }
  std::vector<std::pair<Site, Mixer*>> mixers() const override { return reader->mixers(); }
  int64_t max_length() const override { return max_length_; }
  int64_t target_vocabulary() const override { return context_.target_vocabulary; }
  int64_t frame_width() const { return frame_width_; }

 protected:
  FrameWriter(const FrameWriterOptions& options, const ModelContext& context, bool ctc);
  ModelContext context_;
  std::shared_ptr<FrameReader> reader{nullptr};
  torch::nn::Linear ctc_output{nullptr};

 private:
  int64_t frame_width_, max_length_;
};

}  // namespace headlab
