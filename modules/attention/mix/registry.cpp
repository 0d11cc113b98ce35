#include "modules/attention/mix/concatenate.h"
#include "modules/attention/mix/experts.h"
#include "modules/attention/mix/low_rank.h"

namespace headlab {

const Mixes& mixes() {
  static const Mixes registry = Mixes("mix", "turns the heads' outputs into the attention's output")
                                    .entry<Concatenate, ConcatenateOptions>("concatenate", "concatenation times W_O", "1706.03762")
                                    .entry<LowRankMix, LowRankMixOptions>("low_rank", "concatenation times W_O and a product of two narrow matrices", "2106.09685")
                                    .entry<ExpertsMix, NoOptions>("experts", "the chosen experts' own output matrices, weighted", "2210.05144");
  return registry;
}
const Catalogue& mix_catalogue() { return mixes().catalogue(); }

}  // namespace headlab
