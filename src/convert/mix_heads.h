#pragma once

#include "src/convert/conversion.h"

namespace headlab {

struct MixHeadsConversionOptions : Described<MixHeadsConversionOptions> {
  int64_t components = 1;
  void describe(Fields& fields) override {
    fields.add("components", components, "heads whose keys and values are kept and mixed; a divisor of the heads")
        .at_least(1)
        .required();
  }
};

/// Heads as mixes of h' component heads (the adapter mix_heads, 2601.19611), whose keys and values alone a cache keeps.
/// Keys: each head's matrix and bias is a row of W_K [H, (D + 1) K], and
///
///   W_K ~ Lambda_K^T R,   W_K = U S V^T:  Lambda_K^T = U S^(1/2),  R = S^(1/2) V^T, both cut after h'
///
/// (the nearest matrix of rank h'); the rows of R are the components'. Values likewise. Exact where the H rows span no
/// more than h' dimensions. Queries and all else stay; positions act on components as on heads, since all turn by the
/// same angles. Figures: "key_error", "value_error": |W - Lambda^T R| / |W|, Frobenius norms.
class MixHeadsConversion : public Conversion {
 public:
  explicit MixHeadsConversion(const MixHeadsConversionOptions& options) : options_(options) {}
  AttentionOptions options(const Attention& from, Site site) override;
  nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) override;

 private:
  MixHeadsConversionOptions options_;
};

}  // namespace headlab
