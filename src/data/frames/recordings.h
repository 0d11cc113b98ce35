#pragma once

#include "src/data/frames/frames.h"
#include "src/data/frames/log_mel.h"
#include "src/data/frames/recording_list.h"
#include "src/data/generated/generator.h"

namespace headlab {

/// Texts of several recordings, drawn: how many each has, and how many texts there are.
struct JoinOptions : SizeRange {
  int64_t train = 0, valid = 0, test = 0, seed = 1;
  std::string within;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<JoinOptions>(*this); }
  bool draws() const { return train > 0; }
};

/// Recordings as frames (LogMel), and what is said in them as symbols.
///
/// The text of a recording, or what `written` has for it, is cut into symbols by `units`:
///   text        it is one symbol, which is the class of each of its frames, too
///   words       between white space
///   characters  code points; white space between them is one symbol, <space>
/// All symbols of all parts are known, in the order of their code points.
///
/// `join`: a text is the frames of some recordings of its part, one after another, and their symbols; drawn one by one
/// with repetition, all with the first one's value of `within`. Each part has its own stream of draws, and a smaller
/// part is the beginning of a larger one. Characters of joined recordings have <space> between them.
struct RecordingsOptions : Described<RecordingsOptions>, FrameSource {
  Choice list{recording_list_catalogue, "manifest"};
  std::string text = "text", units = "characters";
  nlohmann::ordered_json written = nlohmann::ordered_json::object();
  LogMelOptions features;
  JoinOptions join;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  /// Throws FileError with the file, or the manifest's line, that does not fit.
  FrameData load(const std::string& spec_folder, uint64_t run) const override;
  int64_t frame_width() const override { return features.mels; }
  bool has_frame_classes() const override { return units == "text"; }
  /// The frames of a sound file. Throws FileError, also for another rate.
  std::vector<float> read(const std::string& path) const;
  /// The text that was cut into these symbols: the inverse of `units`, white space apart.
  std::string text_of(const std::vector<std::string>& symbols) const;
};

}  // namespace headlab
