#pragma once

#include "src/data/frames/frames.h"
#include "src/data/generated/generate.h"

namespace headlab {

/// The symbols of an exercise at whose symbols something is asked (Form::aligned), as frames.
struct SymbolFramesOptions : GeneratedOptions, FrameSource {
  SymbolFramesOptions() { exercise.choose("paired_recall"); }
  void rules(Problems& problems) const override;
  std::shared_ptr<Options> copy() const override { return std::make_shared<SymbolFramesOptions>(*this); }
  FrameData load(const std::string& spec_folder, uint64_t run) const override;
  int64_t frame_width() const override;
};

/// The parts of a symbol "a=b" are a and b, of any other it is itself the only one. A frame has a number for each
/// part that occurs, 1 for those of its symbol and 0 for the others: what a model makes of it by a matrix is the sum
/// of its parts' embeddings. The classes are the parts; frames at which nothing is asked have class -1. `run`: the
/// seed in place of -1.
FrameData symbol_frames(const SymbolFramesOptions& options, uint64_t run);

/// How wide the frames of these options are.
int64_t symbol_frame_width(const SymbolFramesOptions& options);

}  // namespace headlab
