#include "modules/attention/project/collaborative.h"
#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/experts.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/head_embeddings.h"
#include "modules/attention/project/knocking.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/simulated.h"
#include "modules/attention/project/standard.h"
#include "modules/attention/rules.h"

namespace headlab {

const Projects& projects() {
  static const Projects registry =
      Projects("project", "makes queries, keys and values")
          .entry<StandardProject, StandardProjectOptions>("standard", "a query, key and value for each head",
                                                          "1706.03762")
          .entry<GroupedProject, GroupedProjectOptions>("grouped", "heads share keys and values in groups",
                                                        "2305.13245")
          .rule(grouped_rule)
          .entry<DecoupledProject, DecoupledProjectOptions>(
              "decoupled", "heads share keys in groups, and values in others", "2406.06567")
          .rule(decoupled_rule)
          .entry<Collaborative, CollaborativeOptions>(
              "collaborative", "heads share the dimensions of queries and keys, and weigh each their own way",
              "2006.16362")
          .rule(collaborative_rule)
          .entry<ExpertsProject, ExpertsProjectOptions>(
              "experts",
              "a query for each expert that a token chose, one key and value for all; with the gate route_experts and "
              "the mix experts",
              "2210.05144", Traits{.clashes = {{"adapter.*", "its heads differ from token to token"}}})
          .rule(experts_rule)
          .entry<HeadEmbeddings, HeadEmbeddingsOptions>(
              "head_embeddings", "one query, key and value, and vectors that make them each head's own", "2310.07911")
          .entry<Simulated, SimulatedOptions>("simulated", "many wide heads made of a few projected ones",
                                              "2507.07694");
  return registry;
}
const Catalogue& project_catalogue() { return projects().catalogue(); }

const Adapters& adapters() {
  static const Adapters registry =
      Adapters("adapter", "changes queries, keys or values after projection")
          .entry<MixHeads, MixHeadsOptions>("mix_heads",
                                            "each head's key and value is a learned mix of all heads' keys and values",
                                            "2601.19611", Traits{.reads_all_groups = true})
          .entry<Knocking, KnockingOptions>("knocking", "maps that all heads share, on queries, keys or values",
                                            "2510.23052", Traits{.before_cache = true})
          .entry<FuseGroups, FuseGroupsOptions>("fuse_groups",
                                                "heads' keys and values that a loss makes equal within groups",
                                                "2406.06567", Traits{.reads_all_groups = true, .before_cache = true})
          .rule(fuse_groups_rule)
          .entry<Persistent, PersistentOptions>(
              "persistent", "each head sees learned keys and values beside the text's", "2110.03252")
          .rule(persistent_rule);
  return registry;
}
const Catalogue& adapter_catalogue() { return adapters().catalogue(); }

}  // namespace headlab
