#include "src/heads/score/confidence.h"
#include "src/heads/score/direction.h"
#include "src/heads/score/dynamic_importance.h"
#include "src/heads/score/gradient.h"
#include "src/heads/score/loss.h"
#include "src/heads/score/lrp.h"
#include "src/heads/score/magnitude_profile.h"
#include "src/heads/score/random.h"
#include "src/heads/score/scalar.h"
#include "src/heads/score/wanda.h"

namespace headlab {

const Scorers& scorers() {
  static const Scorers registry =
      Scorers("scorer", "says how much each head matters")
          .entry<GradientScorer, GradientScorerOptions>("gradient", "mean absolute gradient of a factor on the head",
                                                        "1905.10650")
          .entry<LossScorer, LossScorerOptions>("loss", "growth of the loss when the head alone is masked",
                                                "1905.10650")
          .entry<ConfidenceScorer, ConfidenceOptions>("confidence", "mean of the largest weight that the head gives",
                                                      "1905.09418")
          .entry<DirectionScorer, DirectionOptions>("direction", "how far its output points towards one answer",
                                                    "2508.19697")
          .entry<MagnitudeProfile, MagnitudeProfileOptions>(
              "magnitude_profile", "how far its rows stand out by their norms; needs no data", "2609.26177")
          .entry<NormScorer, NoOptions>("norm", "sum of the norms of its weights")
          .entry<ScalarScorer, NoOptions>("scalar", "the scale that its gate has learned", "2607.13425")
          .entry<DynamicImportanceScorer, DynamicImportanceScorerOptions>(
              "dynamic_importance", "mean importance that its gate gives to the head", "2108.01377")
          .entry<RelevanceScorer, RelevanceScorerOptions>(
              "lrp", "share of an answer's relevance that goes through the head", "1905.09418")
          .entry<WandaScorer, WandaOptions>("wanda", "size of its output weights, each by the norm of what comes in",
                                            "2306.11695")
          .entry<RandomScorer, NoOptions>("random", "uniform numbers, the control");
  return registry;
}
const Catalogue& scorer_catalogue() { return scorers().catalogue(); }

}  // namespace headlab
