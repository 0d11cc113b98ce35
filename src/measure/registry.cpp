#include "src/measure/attention.h"
#include "src/measure/couplings.h"
#include "src/measure/experts.h"
#include "src/measure/frequencies.h"
#include "src/measure/heads_by_length.h"
#include "src/measure/importances.h"
#include "src/measure/kept_tokens.h"
#include "src/measure/likeness.h"
#include "src/measure/maps.h"
#include "src/measure/measure.h"
#include "src/measure/roles.h"
#include "src/measure/support.h"
#include "src/measure/tag_mass.h"
#include "src/measure/windows.h"

namespace headlab {

const Measures& measures() {
  static const Measures registry =
      Measures("measure", "quantities of a model or its mechanisms that no metric gives")
          .entry<ScoreMeasure, ScoreMeasureOptions>(
              "scores", "variance of q k^T for random q and k, and how far softmax saturates", "1706.03762")
          .entry<GradientMeasure, GradientMeasureOptions>("gradients", "norm of the loss's gradient in each layer",
                                                          "2002.04745")
          .entry<AttentionMeasure, AttentionMeasureOptions>(
              "attention", "the attention weights of every head on a few texts, for the report")
          .entry<CouplingsMeasure, CouplingsMeasureOptions>(
              "couplings", "how far the couplings of heads and capsules are from uniform", "1904.03100")
          .entry<ExpertsMeasure, ExpertsOptions>(
              "experts", "which experts tokens pick, and how much the token says about them", "2210.05144")
          .entry<MapsMeasure, NoOptions>(
              "maps", "how far the matrices that heads share are from leaving queries, keys and values as they are",
              "2510.23052")
          .entry<FrequenciesMeasure, NoOptions>("frequencies", "the frequencies that the heads of adarope have learned",
                                                "2607.19363")
          .entry<ImportancesMeasure, ImportancesOptions>(
              "importances", "how much each head counts by its gate, and how far from uniform that is", "2108.01377")
          .entry<HeadGradientsMeasure, HeadGradientsOptions>(
              "head_gradients", "the cosine of the gradients of heads' own parameters", "2209.06096")
          .entry<HeadsByLengthMeasure, HeadsByLengthMeasureOptions>(
              "heads_by_length", "what heads by the length of a text cost, and how right texts of each length are",
              "2310.14505")
          .entry<KeptTokensMeasure, KeptTokensOptions>(
              "kept_tokens", "the share of keys and of pairs that heads of native_sparse keep, and how equally",
              "2609.38832")
          .entry<LikenessMeasure, LikenessMeasureOptions>("likeness", "how alike the heads of an attention are",
                                                          "2209.06096")
          .entry<RolesMeasure, RolesOptions>(
              "roles", "which heads look at an offset, along a dependency, or at the rarest word", "1905.09418")
          .entry<SupportMeasure, SupportMeasureOptions>("support", "how many keys the weights of each head reach",
                                                        "1911.03898")
          .entry<TagMassMeasure, TagMassOptions>(
              "tag_mass", "the mass of each head's weights on an offset, and on words of each tag", "1911.03898")
          .entry<TimeMeasure, TimeMeasureOptions>("time", "seconds of a forward pass by length")
          .entry<WindowsMeasure, WindowsMeasureOptions>(
              "windows", "the window of each head, and the share of context that they allocate", "2608.19203");
  return registry;
}
const Catalogue& measure_catalogue() { return measures().catalogue(); }

}  // namespace headlab
