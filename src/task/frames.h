#pragma once

#include "src/task/over_frames.h"

namespace headlab {

struct FrameTaskOptions : Described<FrameTaskOptions>, OverFramesOptions {
  void describe(Fields& fields) override { describe_data(fields); }
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// The class of each frame of a text of frames.
/// Metrics: frame_error (share of frames that are given another class), accuracy (of those that are not), loss (nats a
/// frame).
class FrameTask : public OverFrames {
 public:
  FrameTask(const FrameTaskOptions& options, const TaskContext& context) : OverFrames(options, context, "classes") {}
  ModelContext context() const override;
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override {
    return {{}, frames_of_texts(split)};
  }
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples,
                     torch::Device device) const override;
  MetricNames metrics() const override { return FrameTaskOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
};

}  // namespace headlab
