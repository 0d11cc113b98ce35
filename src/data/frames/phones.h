#pragma once

#include "src/data/frames/frames.h"
#include "src/data/generated/generator.h"

namespace headlab {

struct PhonesOptions : Described<PhonesOptions>, FrameSource {
  int64_t phones = 10, width = 16;
  SizeRange symbols{8, 8}, frames{3, 3};
  double noise = 1.2;
  int64_t prototypes = 4, train = 16000, valid = 500, test = 500, seed = 1;
  void describe(Fields& fields) override;
  FrameData load(const std::string& spec_folder, uint64_t run) const override;
  int64_t frame_width() const override { return width; }
};

/// Texts of uniformly drawn phones. Each phone lasts some frames, all of them its prototype with noise:
///   x_t = p_{y(t)} + noise * e_t,   p and e of independent N(0,1)
/// The prototypes depend on `prototypes`, the seed of their draw, alone. The same options give the same texts; each
/// part has its own stream, and a smaller part is the beginning of a larger one. `run`: the seed in place of -1.
FrameData draw_phones(const PhonesOptions& options, uint64_t run);

}  // namespace headlab
