#include "modules/attention/position/adarope.h"
#include "modules/attention/position/alibi.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/position/transformer_xl.h"
#include "modules/attention/rules.h"

namespace headlab {

const Positions& positions() {
  static const Positions registry =
      Positions("position", "rotates queries and keys by their positions, or gives a bias")
          .entry<NoPosition, NoOptions>("none", "no position in the attention (the embedding may carry it)")
          .entry<Rope, RopeOptions>("rope", "rotates pairs of q and k by position times frequency", "2104.09864",
                                    Traits{.self_alone = true})
          .rule(rope_rule)
          .entry<AdaRope, AdaRopeOptions>("adarope",
                                          "rope whose frequencies, and factors of the scores, each head learns",
                                          "2607.19363", Traits{.self_alone = true, .needs_heads = true})
          .rule(adarope_rule)
          .entry<Alibi, AlibiOptions>("alibi", "scores fall with distance, for each head by its own slope",
                                      "2108.12409", Traits{.self_alone = true, .needs_heads = true})
          .entry<Offset, OffsetOptions>("offset", "each head looks at one place, so many tokens back", "2002.10260",
                                        Traits{.self_alone = true, .needs_heads = true})
          .rule(offset_rule)
          .entry<TransformerXl, TransformerXlOptions>("transformer_xl", "a learned product of query and distance",
                                                      "1901.02860", Traits{.self_alone = true, .needs_heads = true})
          .rule(transformer_xl_rule);
  return registry;
}
const Catalogue& position_catalogue() { return positions().catalogue(); }

}  // namespace headlab
