#pragma once

#include "modules/base/fields.h"
#include "src/data/frames/frames.h"

namespace headlab {

const Catalogue& frame_source_catalogue();

/// The source that was chosen from it.
const FrameSource& frame_source(const Choice& choice);

}  // namespace headlab
