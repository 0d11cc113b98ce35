#include "src/measure/attention.h"
#include "src/measure/experts.h"
#include "src/measure/measure.h"
#include "src/measure/roles.h"
#include "src/measure/support.h"
#include "src/measure/windows.h"

namespace headlab {

const Measures& measures() {
  static const Measures registry =
      Measures("measure", "quantities of a model or its mechanisms that no metric gives")
          .entry<ScoreMeasure, ScoreMeasureOptions>("scores", "variance of q k^T for random q and k, and how far softmax saturates", "1706.03762")
          .entry<GradientMeasure, GradientMeasureOptions>("gradients", "norm of the loss's gradient in each layer", "2002.04745")
          .entry<AttentionMeasure, AttentionMeasureOptions>("attention", "the attention weights of every head on a few texts, for the report")
          .entry<ExpertsMeasure, ExpertsOptions>("experts", "which experts tokens pick, and how much the token says about them", "2210.05144")
          .entry<RolesMeasure, RolesOptions>("roles", "which heads look at an offset, along a dependency, or at the rarest word", "1905.09418")
          .entry<SupportMeasure, SupportMeasureOptions>("support", "how many keys the weights of each head reach", "1911.03898")
          .entry<TimeMeasure, TimeMeasureOptions>("time", "seconds of a forward pass by length")
          .entry<WindowsMeasure, WindowsMeasureOptions>("windows", "the window of each head, and the share of context that they allocate", "2608.19203");
  return registry;
}
const Catalogue& measure_catalogue() { return measures().catalogue(); }

}  // namespace headlab
