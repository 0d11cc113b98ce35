#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/head_norm.h"
#include "modules/attention/gate/l0_round.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/scalar.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"

namespace headlab {

const Gates& gates() {
  const Traits self_alone{.self_alone = true}, whole_text{.self_alone = true, .whole_text = true};
  static const Gates registry =
      Gates("gate", "chooses heads before they are computed, and weighs them after")
          .entry<Windows, WindowsOptions>("windows", "a fixed window of keys for each head", "2608.19203", self_alone)
          .entry<RandomWindows, RandomWindowsOptions>(
              "random_windows", "each head draws its window from a set", "2608.19203", self_alone)
          .entry<ShuffledWindows, ShuffledWindowsOptions>(
              "shuffled_windows", "given windows, dealt to the heads of each layer at random", "2608.19203", self_alone)
          .entry<AdaptiveWindows, AdaptiveWindowsOptions>(
              "adaptive_windows", "windows that training chooses for groups of like heads", "2608.19203", whole_text)
          .entry<RoleMasks, RoleMasksOptions>(
              "role_masks", "heads that see the keys of a role alone, as the data tells them", "2012.12366", whole_text)
          .entry<HardConcrete, HardConcreteOptions>("hard_concrete", "learned stochastic gates with an L0 penalty", "1905.09418")
          .entry<L0Round, L0RoundOptions>("l0_round", "learned stochastic gates that are rounded, heads in or out", "2110.03252")
          .entry<ScalarGate, ScalarGateOptions>("scalar", "a learned scale for each head", "2607.13425")
          .entry<HeadNorm, HeadNormOptions>("head_norm", "each head's output divided by its root mean square", "2601.19611")
          .entry<RouteExperts, RouteExpertsOptions>(
              "route_experts", "each token picks its k experts", "2210.05144",
              Traits{.not_masked_equals_removed = "tokens that chose a removed expert choose another one instead"});
  return registry;
}
const Catalogue& gate_catalogue() { return gates().catalogue(); }

}  // namespace headlab
