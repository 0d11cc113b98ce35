#pragma once

#include "src/data/frames/sources.h"
#include "src/task/task.h"

namespace headlab {

/// What the options of tasks over frames share.
struct OverFramesOptions : TaskRules {
  Choice data{frame_source_catalogue, "phones"};
  void describe_data(Fields& fields);
  /// Where the model's frames are not as wide as the data's.
  void width_rule(const Choice& model, Problems& problems) const;
};

/// The frames of some texts, padded with zeros on the right [B,T,F], a placeholder for each of them (0 is a frame, 1
/// padding; no model reads them) and where frames are (bool; undefined where nothing was padded).
struct FrameRows {
  Tensor frames_BTF, places_BT, mask_BT;
};

/// A task whose texts are frames, which models find in Batch::side (modules/embedding/frames.h). Its file is the list
/// of symbols; how wide frames are, and how they are made of recordings, stands in the spec.
class OverFrames : public Task {
 public:
  int64_t longest() const override;
  std::string summary() const override { return summary_; }
  nlohmann::ordered_json report() const override { return report_; }
  TextKind reads() const override { return {{1, -1, -1, -1}, false}; }
  std::map<std::string, std::string> files() const override;
  const FrameData& data() const { return data_; }

 protected:
  /// `said`: what the data's symbols are here, "classes".
  OverFrames(const OverFramesOptions& options, const TaskContext& context, const std::string& said);
  /// Frames of each text of a split.
  std::vector<int64_t> frames_of_texts(const std::string& split) const;
  FrameRows rows(const std::string& split, const std::vector<int64_t>& examples, torch::Device device) const;
  FrameRows rows(const std::vector<const FrameText*>& texts, torch::Device device) const;
  /// The names of symbols, with spaces between.
  std::string text_of(const std::vector<int64_t>& symbols) const;

 private:
  FrameData data_;
  std::string summary_;
  nlohmann::ordered_json report_;
};

}  // namespace headlab
