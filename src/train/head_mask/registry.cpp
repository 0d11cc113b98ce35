#include "src/train/head_mask/counted.h"
#include "src/train/head_mask/dropout.h"

namespace headlab {

const HeadMasks& head_masks() {
  static const HeadMasks registry =
      HeadMasks("head_mask", "chooses heads that an update of training goes without")
          .entry<RandomMask, CountedMaskOptions>("random", "some heads, drawn anew for each update", "2009.09672")
          .entry<ImportanceMask, CountedMaskOptions>(
              "importance", "the heads that matter most to the update, found by a pass before it", "2009.09672")
          .entry<HeadDropout, HeadDropoutOptions>("dropout", "each head with a probability, the others scaled up",
                                                  "2508.19697");
  return registry;
}
const Catalogue& head_mask_catalogue() { return head_masks().catalogue(); }

}  // namespace headlab
