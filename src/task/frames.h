#pragma once

#include "src/data/frames/phones.h"
#include "src/task/task.h"

namespace headlab {

/// Where frames come from: drawn phones, or recordings.
const Catalogue& frame_source_catalogue();
FrameData load_frames(const Choice& source, const TaskContext& context);

/// The frames of some texts, padded with zeros on the right [B,T,F], a placeholder for each of them (0 is a frame, 1 padding;
/// no model reads them) and where frames are (bool; undefined where nothing was padded).
struct FrameRows {
  Tensor frames_BTF, places_BT, mask_BT;
};
FrameRows frame_rows(const std::vector<FrameText>& part, const std::vector<int64_t>& examples, int64_t width, torch::Device device);

struct FrameTaskOptions : Described<FrameTaskOptions>, TaskRules {
  Choice data{frame_source_catalogue, "phones"};
  void describe(Fields& fields) override;
  MetricNames metrics() const override;
  void model_rules(const Choice& model, Problems& problems) const override;
};

/// The class of each frame of a text of frames, which the model finds in Batch::side (modules/embedding/frames.h).
/// Metrics: frame_error (share of frames that are given another class), accuracy (of those that are not), loss (nats a frame).
class FrameTask : public Task {
 public:
  FrameTask(const FrameTaskOptions& options, const TaskContext& context);
  ModelContext context() const override;
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  std::pair<std::vector<int64_t>, std::vector<int64_t>> lengths(const std::string& split) const override;
  TextKind reads() const override { return {{1, -1, -1, -1}, false}; }
  TokenBatch collect(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const override;
  MetricNames metrics() const override { return FrameTaskOptions().metrics(); }
  Evaluation evaluate(Model& model, const EvaluateOptions& options, const Intervention& with) const override;
  std::map<std::string, std::string> files() const override { return {}; }
  const FrameData& data() const { return data_; }

 private:
  FrameData data_;
  std::string summary_;
  nlohmann::ordered_json report_;
};

}  // namespace headlab
