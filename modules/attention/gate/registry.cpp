#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/diversity.h"
#include "modules/attention/gate/dynamic_importance.h"
#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/head_norm.h"
#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/l0_round.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/scalar.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/rules.h"

namespace headlab {
namespace {

bool always(const Options&) { return true; }
bool where_shared_have_one(const Options& options) {
  return dynamic_cast<const NativeSparseOptions&>(options).window.has_value();
}

}  // namespace

const Gates& gates() {
  const Traits whole_text{.self_alone = true, .whole_text = true};
  const Traits windowed{.self_alone = true, .gives_windows = always};
  static const Gates registry =
      Gates("gate", "chooses heads before they are computed, and weighs them after")
          .entry<Windows, WindowsOptions>("windows", "a fixed window of keys for each head", "2608.19203", windowed)
          .rule(windows_rule)
          .entry<RandomWindows, RandomWindowsOptions>("random_windows", "each head draws its window from a set",
                                                      "2608.19203", windowed)
          .entry<ShuffledWindows, ShuffledWindowsOptions>(
              "shuffled_windows", "given windows, dealt to the heads of each layer at random", "2608.19203", windowed)
          .rule(shuffled_windows_rule)
          .entry<AdaptiveWindows, AdaptiveWindowsOptions>(
              "adaptive_windows", "windows that training chooses for groups of like heads", "2608.19203",
              Traits{.self_alone = true, .whole_text = true, .gives_windows = always})
          .entry<RoleMasks, RoleMasksOptions>(
              "role_masks", "heads that see the keys of a role alone, as the data tells them", "2012.12366", whole_text)
          .rule(role_masks_rule)
          .entry<HardConcrete, HardConcreteOptions>("hard_concrete", "learned stochastic gates with an L0 penalty",
                                                    "1905.09418")
          .entry<L0Round, L0RoundOptions>("l0_round", "learned stochastic gates that are rounded, heads in or out",
                                          "2110.03252")
          .entry<ScalarGate, ScalarGateOptions>("scalar", "a learned scale for each head", "2607.13425")
          .entry<HeadNorm, HeadNormOptions>("head_norm", "each head's output divided by its root mean square",
                                            "2601.19611")
          .entry<Diversity, DiversityOptions>("diversity",
                                              "a loss that keeps heads apart: their outputs, values or weights",
                                              "2209.06096", Traits{.whole_text = true})
          .entry<DynamicImportance, DynamicImportanceOptions>(
              "dynamic_importance", "a second attention, over heads, says how much each counts for a token",
              "2108.01377", Traits{.not_masked_equals_removed = "importances sum to 1 over the heads that are there"})
          .entry<HeadsByLength, HeadsByLengthOptions>("heads_by_length", "the longer a text, the more of the heads",
                                                      "2310.14505", whole_text)
          .rule(heads_by_length_rule)
          .entry<NativeSparse, NativeSparseOptions>(
              "native_sparse", "each token picks its heads, and a head sees the tokens alone that picked it",
              "2609.38832",
              Traits{.not_masked_equals_removed = "tokens that picked a removed head pick another one instead",
                     .self_alone = true,
                     .gives_windows = where_shared_have_one,
                     .clashes = {{"gate.native_sparse", "a token picks its heads once"},
                                 {"adapter.mix_heads",
                                  "its heads read the keys of all heads, so that none has tokens of its own"}}})
          .rule(native_sparse_rule)
          .entry<RouteExperts, RouteExpertsOptions>(
              "route_experts", "each token picks its k experts; with the project experts and the mix experts",
              "2210.05144",
              Traits{.not_masked_equals_removed = "tokens that chose a removed expert choose another one instead",
                     .clashes = {{"gate.*", "its heads differ from token to token"}}})
          .rule(route_experts_rule);
  return registry;
}
const Catalogue& gate_catalogue() { return gates().catalogue(); }

}  // namespace headlab
