#include "modules/attention/mix/agreement.h"
#include "modules/attention/mix/capsules.h"
#include "modules/attention/mix/concatenate.h"
#include "modules/attention/mix/experts.h"
#include "modules/attention/mix/grouped_average.h"
#include "modules/attention/mix/low_rank.h"
#include "modules/attention/project/experts.h"
#include "modules/attention/rules.h"

namespace headlab {

const Mixes& mixes() {
  static const Clash no_experts{"gate.route_experts",
                                "all heads of a token vote, and a routed token has some of them alone"};
  static const Mixes registry =
      Mixes("mix", "turns the heads' outputs into the attention's output")
          .entry<Concatenate, ConcatenateOptions>("concatenate", "concatenation times W_O", "1706.03762")
          .entry<LowRankMix, LowRankMixOptions>(
              "low_rank", "concatenation times W_O and a product of two narrow matrices", "2106.09685")
          .entry<GroupedAverage, GroupedAverageOptions>("grouped_average",
                                                        "some heads at a time times one W_O, averaged", "2507.07694")
          .rule(grouped_average_rule)
          .entry<ExpertsMix, NoOptions>(
              "experts",
              "the chosen experts' own output matrices, weighted; with the project experts and the gate route_experts",
              "2210.05144")
          .rule(experts_rule)
          .entry<DynamicAgreement, DynamicAgreementOptions>(
              "dynamic_agreement", "capsules that maps of all heads' outputs agree on, by dynamic routing",
              "1904.03100", Traits{.clashes = {no_experts}})
          .rule(agreement_rule)
          .entry<EmAgreement, EmAgreementOptions>("em_agreement",
                                                  "capsules that maps of all heads' outputs agree on, by EM routing",
                                                  "1904.03100", Traits{.clashes = {no_experts}})
          .rule(agreement_rule)
          .entry<DynamicCapsules, DynamicCapsulesOptions>(
              "dynamic_capsules", "concatenation times W_O and what dynamic routing of the heads finds", "1909.00188",
              Traits{.clashes = {no_experts}})
          .entry<EmCapsules, EmCapsulesOptions>(
              "em_capsules", "concatenation times W_O and what EM routing of the heads finds", "1909.00188",
              Traits{.not_masked_equals_removed =
                         "a head of zeros still votes for zeros, and so moves the means and variances that EM fits",
                     .clashes = {no_experts}});
  return registry;
}
const Catalogue& mix_catalogue() { return mixes().catalogue(); }

}  // namespace headlab
