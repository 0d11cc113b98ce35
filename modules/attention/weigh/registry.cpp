#include "modules/attention/weigh/additive.h"
#include "modules/attention/weigh/dot_product.h"
#include "modules/attention/weigh/softmax.h"
#include "modules/attention/weigh/sparsemax.h"

namespace headlab {

const Scores& scores() {
  static const Scores registry =
      Scores("score", "compares queries and keys")
          .entry<DotProduct, DotProductOptions>("dot_product", "scaled dot product", "1706.03762")
          .entry<Additive, AdditiveOptions>("additive", "a hidden layer over query and key", "1409.0473",
                                            Traits{.needs_heads = true});
  return registry;
}
const Catalogue& score_catalogue() { return scores().catalogue(); }

const Normalisers& normalisers() {
  static const Normalisers registry =
      Normalisers("normalise", "turns a row of scores into weights")
          .entry<Softmax, NoOptions>("softmax", "exponentials over their sum", "1706.03762")
          .entry<Sparsemax, NoOptions>("sparsemax", "the nearest point of the simplex: small weights are exactly 0",
                                       "1602.02068");
  return registry;
}
const Catalogue& normalise_catalogue() { return normalisers().catalogue(); }

}  // namespace headlab
