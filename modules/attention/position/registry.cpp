#include "modules/attention/position/rope.h"

namespace headlab {

const Positions& positions() {
  static const Positions registry =
      Positions("position", "rotates queries and keys by their positions, or gives a bias")
          .entry<NoPosition, NoOptions>("none", "no position in the attention (the embedding may carry it)")
          .entry<Rope, RopeOptions>("rope", "rotates pairs of q and k by position times frequency", "2104.09864");
  return registry;
}
const Catalogue& position_catalogue() { return positions().catalogue(); }

}  // namespace headlab
