#include "src/convert/collaborative.h"
#include "src/convert/conversion.h"
#include "src/convert/decoupled.h"
#include "src/convert/fuse_groups.h"
#include "src/convert/mix_heads.h"
#include "src/convert/standard.h"

namespace headlab {

const Conversions& conversions() {
  static const Conversions registry =
      Conversions("conversion", "makes attentions of another kind out of trained ones")
          .entry<StandardConversion, NoOptions>("standard",
                                                "keys and values of its own for each head, of groups or mixes of heads")
          .entry<CollaborativeConversion, CollaborativeConversionOptions>(
              "collaborative", "shared dimensions of queries and keys, which heads weigh each their own way",
              "2006.16362")
          .entry<DecoupledConversion, DecoupledConversionOptions>(
              "decoupled",
              "heads share keys and values in groups, by the mean of each group or by what a fusion has made of it",
              "2406.06567")
          .entry<FuseGroupsConversion, FuseGroupsConversionOptions>(
              "fuse_groups", "heads that a training then makes one within groups, for decoupled", "2406.06567")
          .entry<MixHeadsConversion, MixHeadsConversionOptions>(
              "mix_heads", "keys and values of a few component heads, mixed for each head", "2601.19611");
  return registry;
}
const Catalogue& conversion_catalogue() { return conversions().catalogue(); }

}  // namespace headlab
