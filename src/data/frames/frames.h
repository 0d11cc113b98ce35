#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Texts of frames: rows of numbers, as of sounds, in place of symbols.
namespace headlab {

/// One of them: frames one after another, `width` numbers each.
struct FrameText {
  std::vector<float> frames;
  std::vector<int64_t> at_frame;  // the class of each frame, -1 where nothing is asked; empty where it is not known
  std::vector<int64_t> symbols;   // what is said in them
  int64_t length(int64_t width) const { return static_cast<int64_t>(frames.size()) / width; }
};

struct FrameData {
  int64_t width = 0;
  std::vector<std::string> symbols;                     // names of the classes
  std::map<std::string, std::vector<FrameText>> parts;  // train, valid, test
};

/// Where frames come from: the options of each source derive from it.
struct FrameSource {
  virtual ~FrameSource() = default;
  /// Files are looked for beside the spec and in HEADLAB_DATA; `run`: the seed in place of -1. Throws Error where files
  /// don't hold what the options say.
  virtual FrameData load(const std::string& spec_folder, uint64_t run) const = 0;
  /// FrameData::width, known before anything is read.
  virtual int64_t frame_width() const = 0;
  /// Whether the class of each frame is known, or only what is said in the whole text.
  virtual bool has_frame_classes() const { return true; }
};

}  // namespace headlab
