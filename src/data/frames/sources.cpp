#include "src/data/frames/sources.h"

#include "src/data/frames/phones.h"
#include "src/data/frames/recordings.h"
#include "src/data/frames/symbols.h"

namespace headlab {

const Catalogue& frame_source_catalogue() {
  static const Catalogue catalogue{"frame_source",
                                   "where frames come from",
                                   {{"phones", "prototypes with noise, a few frames each", "2209.06096",
                                     [] { return std::make_shared<PhonesOptions>(); }},
                                    {"symbols", "the symbols of an exercise, each the sum of its parts", "",
                                     [] { return std::make_shared<SymbolFramesOptions>(); }},
                                    {"recordings", "log-mel features of sound files", "1804.08050",
                                     [] { return std::make_shared<RecordingsOptions>(); }}}};
  return catalogue;
}

const FrameSource& frame_source(const Choice& choice) { return dynamic_cast<const FrameSource&>(choice.options()); }

}  // namespace headlab
