#pragma once

#include <map>

#include "src/data/generated/generator.h"

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

struct PhonesOptions : Described<PhonesOptions> {
  int64_t phones = 10, width = 16;
  SizeRange symbols{8, 8}, frames{3, 3};
  double noise = 1.2;
  int64_t prototypes = 4, train = 16000, valid = 500, test = 500, seed = 1;
  void describe(Fields& fields) override;
};

/// Texts of uniformly drawn phones. Each phone lasts some frames, all of them its prototype with noise:
///   x_t = p_{y(t)} + noise * e_t,   p and e of independent N(0,1)
/// The prototypes depend on `prototypes`, the seed of their draw, alone. The same options give the same texts; each part has
/// its own stream, and a smaller part is the beginning of a larger one. `run`: the seed in place of -1.
FrameData draw_phones(const PhonesOptions& options, uint64_t run);

}  // namespace headlab
