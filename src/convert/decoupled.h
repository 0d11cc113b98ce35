#pragma once

#include "src/convert/grouping.h"

namespace headlab {

struct DecoupledConversionOptions : Described<DecoupledConversionOptions> {
  GroupingOptions grouping;
  void describe(Fields& fields) override { grouping.describe(fields); }
};

/// Heads that share keys and values in groups (the project decoupled, 2406.06567): a group's key matrix is the mean of
/// its heads', and so are its biases; values likewise. Of attentions with the adapter fuse_groups a head's matrix is
/// sum_j w_ij W_j and groups are the adapter's, so that a fusion that has come to its end is kept exactly; the grouping
/// options are for other attentions: contiguous groups of equal budgets make grouped queries by mean-pooling
/// (2305.13245). Figures: "key_groups", "value_groups"; "key_error", "value_error": |W - what it became| / |W|,
/// Frobenius norms over all heads; of a fusion "key_fusion", "value_fusion", what is left of its loss.
class DecoupledConversion : public Conversion {
 public:
  explicit DecoupledConversion(const DecoupledConversionOptions& options) : options_(options) {}
  void look(const ConversionWork& work) override;
  AttentionOptions options(const Attention& from, Site site) override;
  nlohmann::ordered_json weights(const Attention& from, Attention& to, Site site) override;

 private:
  DecoupledConversionOptions options_;
  std::map<Site, FusionGroups> groups_;
};

}  // namespace headlab
